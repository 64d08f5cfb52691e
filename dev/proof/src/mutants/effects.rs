//! Registers and flags that no later instruction of a function reads.

use std::collections::BTreeMap;

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register, RflagsBits,
};

use super::change::{Mutant, decode};
use crate::image::Image;

/// A set of registers and flags: bits 0 to 15 for general registers, 16 to 47 for vector registers, 48 to 55 for mask registers, and one
/// for each flag from 56 on.
type Set = u64;

const ALL: Set = u64::MAX;
const VECTORS: u32 = 16;
const MASKS: u32 = 48;
const FLAGS: u32 = 56;

fn place(register: Register) -> Set {
    let number = register.number() as u32;
    match register {
        _ if register.is_gpr() => 1 << register.full_register().number(),
        _ if register.is_vector_register() => 1 << (VECTORS + number),
        _ if register.is_k() => 1 << (MASKS + number),
        _ => 0,
    }
}

fn flags(bits: u32) -> Set {
    [RflagsBits::CF, RflagsBits::PF, RflagsBits::AF, RflagsBits::ZF, RflagsBits::SF, RflagsBits::OF]
        .iter()
        .enumerate()
        .filter(|(_, bit)| bits & **bit != 0)
        .fold(0, |set, (index, _)| set | 1 << (FLAGS + index as u32))
}

fn set(registers: &[Register]) -> Set {
    registers.iter().fold(0, |set, register| set | place(*register))
}

/// Registers whose values a caller may use after a return: those that functions preserve, and those of results. Results have at most three
/// general registers and four vector registers.
fn at_return() -> Set {
    use Register::{R12, R13, R14, R15, RAX, RBP, RBX, RCX, RDX, RSP, XMM0, XMM1, XMM2, XMM3};
    set(&[RBX, RBP, R12, R13, R14, R15, RSP, RAX, RDX, RCX, XMM0, XMM1, XMM2, XMM3])
}

/// Registers that a called function may read: arguments, and those that functions preserve.
fn at_call() -> Set {
    use Register::{R8, R9, R12, R13, R14, R15, RAX, RBP, RBX, RCX, RDI, RDX, RSI, RSP, XMM0};
    let vectors = (0..8).fold(0, |set, index| set | place(XMM0 + index));
    vectors | set(&[RDI, RSI, RDX, RCX, R8, R9, RAX, RBX, RBP, R12, R13, R14, R15, RSP])
}

/// What an instruction reads and writes.
#[derive(Clone, Copy, Default)]
pub(super) struct Effects {
    reads: Set,
    /// Registers and flags that may be written.
    writes: Set,
    /// Registers and flags all of whose bits are always written.
    kills: Set,
    reads_memory: bool,
    writes_memory: bool,
    /// The memory operand: its registers and scale, its displacement, and its size.
    operand: Option<((Register, Register, u32), u64, u64)>,
}

impl Effects {
    /// The effects of an instruction.
    pub(super) fn of(instruction: &Instruction) -> Effects {
        let mut factory = InstructionInfoFactory::new();
        let info = factory.info(instruction);
        let mut effects = Effects {
            reads: flags(instruction.rflags_read()),
            writes: flags(instruction.rflags_modified()),
            kills: flags(instruction.rflags_modified()),
            operand: operand(instruction),
            ..Effects::default()
        };
        for used in info.used_registers() {
            let (register, place) = (used.register(), place(used.register()));
            let (reads, writes) = access(used.access());
            effects.reads |= if reads { place } else { 0 };
            effects.writes |= if writes { place } else { 0 };
            // A write of a part of a register keeps the rest.
            let is_whole = register.is_gpr64() || register.is_zmm() || register.is_k();
            let is_certain = matches!(used.access(), OpAccess::Write | OpAccess::ReadWrite);
            effects.kills |= if is_whole && is_certain { place } else { 0 };
        }
        for used in info.used_memory() {
            let (reads, writes) = access(used.access());
            effects.reads_memory |= reads;
            effects.writes_memory |= writes;
        }
        // A shift by a register changes no flag if the count is zero.
        use Mnemonic::{Rol, Ror, Sar, Shl, Shld, Shr, Shrd};
        if matches!(instruction.mnemonic(), Shl | Shr | Sar | Rol | Ror | Shld | Shrd) {
            effects.kills &= (1 << FLAGS) - 1;
        }
        effects
    }

    /// The registers and flags whose values after two instructions depend on their order. `None` if everything may depend on it.
    pub(super) fn conflict(&self, next: &Effects) -> Option<Set> {
        let is_read = self.writes & next.reads != 0 || self.reads & next.writes != 0;
        let touches = self.writes_memory && (next.reads_memory || next.writes_memory)
            || self.reads_memory && next.writes_memory;
        (!(is_read || touches && self.overlaps(next))).then_some(self.writes & next.writes)
    }

    /// False if the memory operands of two instructions, neither of which changes an address, are different places of one array.
    fn overlaps(&self, next: &Effects) -> bool {
        let (Some((base, x, size_x)), Some((other, y, size_y))) = (self.operand, next.operand) else {
            return true;
        };
        base != other || x.wrapping_sub(y) < size_y || y.wrapping_sub(x) < size_x
    }
}

/// The memory operand of an instruction, except for those relative to its address and those with two memory operands.
fn operand(i: &Instruction) -> Option<((Register, Register, u32), u64, u64)> {
    let memory = (0..i.op_count()).filter(|operand| i.op_kind(*operand) == OpKind::Memory).count();
    let size = i.memory_size().size() as u64;
    (memory == 1 && size > 0 && !i.is_ip_rel_memory_operand()).then(|| {
        ((i.memory_base(), i.memory_index(), i.memory_index_scale()), i.memory_displacement64(), size)
    })
}

fn access(access: OpAccess) -> (bool, bool) {
    match access {
        OpAccess::Read | OpAccess::CondRead => (true, false),
        OpAccess::Write | OpAccess::CondWrite => (false, true),
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
        _ => (false, false),
    }
}

/// Why a mutant cannot be refuted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// It changes only registers and flags that are dead: on each path, an instruction overwrites them before another one reads them. Such a
    /// mutant is equivalent for all inputs. (A dead register may still hold a secret at return, which the runs show.)
    Dead,
    /// It changes only the condition under which the program panics, such as a check of an index. The runs show that the changed program
    /// does not panic, and the check never fails if the program is right.
    Check,
}

/// The reason why no run can refute a mutant; `None` if a run may refute it.
pub(super) fn reason(image: &Image, mutant: &Mutant) -> Option<Reason> {
    let after = mutant.after();
    let last = mutant.before.last()?;
    if let [branch] = &mutant.before[..]
        && branch.flow_control() == FlowControl::ConditionalBranch
    {
        let is_same = after.iter().all(|i| i.near_branch_target() == branch.near_branch_target());
        return (is_same && panics(image, branch.near_branch_target())).then_some(Reason::Check);
    }
    let changed = changed(&mutant.before, &after)?;
    let is_dead = |ignores_checks| Some(live_after(image, last, ignores_checks)? & changed == 0);
    if is_dead(false)? { Some(Reason::Dead) } else { is_dead(true)?.then_some(Reason::Check) }
}

/// The registers and flags whose values a change affects. `None` if it affects memory or the flow of control.
fn changed(before: &[Instruction], after: &[Instruction]) -> Option<Set> {
    match (before, after) {
        ([first, second], _) => Effects::of(first).conflict(&Effects::of(second)),
        // XCHG writes the same value to the first operand as MOV. It also changes the second operand.
        ([first], [other]) if (first.mnemonic(), other.mnemonic()) == (Mnemonic::Mov, Mnemonic::Xchg) => {
            Some(place(first.op1_register()))
        }
        // A load at another address may be out of bounds.
        ([first], [other]) if Effects::of(other).reads_memory && !is_same_memory(first, other) => None,
        _ => before.iter().chain(after).try_fold(0, |changed, i| {
            let effects = Effects::of(i);
            let is_plain = !effects.writes_memory && i.flow_control() == FlowControl::Next;
            is_plain.then_some(changed | effects.writes)
        }),
    }
}

fn is_same_memory(x: &Instruction, y: &Instruction) -> bool {
    let place = |i: &Instruction| {
        let registers = (i.memory_segment(), i.memory_base(), i.memory_index(), i.memory_index_scale());
        (registers, i.memory_displacement64(), i.memory_size().size())
    };
    place(x) == place(y)
}

/// Functions that never return.
const PANICS: [&str; 11] = [
    "core::panicking::panic",
    "core::panicking::panic_fmt",
    "core::panicking::panic_bounds_check",
    "core::panicking::assert_failed",
    "core::panicking::panic_const::panic_const_div_by_zero",
    "core::slice::index::slice_index_fail",
    "core::slice::copy_from_slice_impl::len_mismatch_fail",
    "core::option::expect_failed",
    "core::option::unwrap_failed",
    "core::result::unwrap_failed",
    "alloc::alloc::handle_alloc_error",
];

/// True if the code at an address only calls a function that panics.
fn panics(image: &Image, mut address: u64) -> bool {
    // Such code sets at most a few arguments.
    const MOST: usize = 12;
    for _ in 0..MOST {
        let Some(code) = image.code_at(address) else { return false };
        let instruction = Decoder::with_ip(64, code, address, DecoderOptions::NONE).decode();
        address = match instruction.flow_control() {
            FlowControl::Next => instruction.next_ip(),
            FlowControl::UnconditionalBranch => instruction.near_branch_target(),
            FlowControl::Call => {
                let function = image.function_at(instruction.near_branch_target());
                // The path without type parameters.
                let path = function.split("::<").next().unwrap_or(&function);
                return PANICS.contains(&path);
            }
            FlowControl::Exception => return true,
            _ => return false,
        };
    }
    false
}

/// The registers and flags that instructions after an instruction may read. With `ignores_checks`, branches to code that panics are not
/// taken and read nothing.
fn live_after(image: &Image, instruction: &Instruction, ignores_checks: bool) -> Option<Set> {
    let function = image.symbol_at(instruction.ip()).filter(|symbol| symbol.is_function)?;
    let code = image.code_at(function.address)?;
    let code = &code[..(function.size as usize).min(code.len())];
    let code = decode(code, function.address);
    let effects: Vec<Effects> = code.iter().map(Effects::of).collect();
    let is_check: Vec<bool> = code
        .iter()
        .map(|i| {
            ignores_checks
                && i.flow_control() == FlowControl::ConditionalBranch
                && panics(image, i.near_branch_target())
        })
        .collect();
    let places: BTreeMap<u64, usize> =
        code.iter().enumerate().map(|(index, instruction)| (instruction.ip(), index)).collect();
    // What is live before each instruction. The sets grow until none of them changes.
    let mut live: Vec<Set> = vec![0; code.len()];
    loop {
        let mut is_stable = true;
        for index in (0..code.len()).rev() {
            let at = |address| places.get(&address).map(|index| live[*index]);
            let before = if is_check[index] {
                at(code[index].next_ip()).unwrap_or(ALL)
            } else {
                before(&code[index], &effects[index], at)
            };
            is_stable &= before == live[index];
            live[index] = before;
        }
        if is_stable {
            break;
        }
    }
    Some(places.get(&instruction.next_ip()).map_or(ALL, |index| live[*index]))
}

/// What is live before an instruction. `live` returns what is live before the instruction at an address, if it is in the function.
fn before(instruction: &Instruction, effects: &Effects, live: impl Fn(u64) -> Option<Set>) -> Set {
    let next = || live(instruction.next_ip()).unwrap_or(ALL);
    // A jump to another function is a call whose return is that of this function.
    let target = || live(instruction.near_branch_target()).unwrap_or(at_call() | at_return());
    match instruction.flow_control() {
        FlowControl::Next => effects.reads | next() & !effects.kills,
        FlowControl::UnconditionalBranch => target(),
        FlowControl::ConditionalBranch => effects.reads | next() | target(),
        FlowControl::Call | FlowControl::IndirectCall => {
            // After a call, only results and the registers that functions preserve have values.
            effects.reads | at_call() | next() & at_return()
        }
        FlowControl::Return => at_return(),
        // UD2 ends the program.
        FlowControl::Exception => 0,
        _ => ALL,
    }
}

/// Operations that have the same effect under several names.
const SYNONYMS: [&[Mnemonic]; 17] = {
    use Mnemonic::*;
    [
        &[Movdqa, Movdqu, Movaps, Movups, Movapd, Movupd, Lddqu, Movntdq, Movntps],
        &[Vmovdqa, Vmovdqu, Vmovaps, Vmovups, Vmovapd, Vmovupd, Vlddqu, Vmovntdq, Vmovntps],
        &[
            Vmovdqa32, Vmovdqa64, Vmovdqu32, Vmovdqu64, Vmovdqu8, Vmovdqu16, Vmovaps, Vmovups, Vmovapd,
            Vmovupd, Vmovntdq, Vmovntps,
        ],
        &[Pxor, Xorps, Xorpd],
        &[Vpxor, Vpxord, Vpxorq, Vxorps, Vxorpd],
        &[Pand, Andps, Andpd],
        &[Vpand, Vpandd, Vpandq, Vandps, Vandpd],
        &[Por, Orps, Orpd],
        &[Vpor, Vpord, Vporq, Vorps, Vorpd],
        &[Pandn, Andnps, Andnpd, Vpandn, Vpandnd, Vpandnq, Vandnps, Vandnpd],
        &[Vbroadcasti128, Vbroadcastf128, Vbroadcasti32x4, Vbroadcasti64x2, Vbroadcastf32x4, Vbroadcastf64x2],
        &[Vinserti128, Vinsertf128, Vinserti32x4, Vinserti64x2, Vinsertf32x4, Vinsertf64x2],
        &[Vextracti128, Vextractf128, Vextracti32x4, Vextracti64x2, Vextractf32x4, Vextractf64x2],
        &[Shl, Sal],
        &[Vpternlogd, Vpternlogq],
        &[Vshufi32x4, Vshufi64x2, Vshuff32x4, Vshuff64x2],
        &[Prefetcht0, Prefetcht1, Prefetcht2, Prefetchw, Prefetchnta],
    ]
};

/// True if two mnemonics are names of one operation.
pub(super) fn is_same_operation(x: Mnemonic, y: Mnemonic) -> bool {
    SYNONYMS.iter().any(|names| names.contains(&x) && names.contains(&y))
}
