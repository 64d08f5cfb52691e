//! The registers, flags and memory that instructions read and write, and the operations that have several names.

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, RflagsBits};

/// A set of registers and flags: bits 0 to 15 for general registers, 16 to 47 for vector registers, 48 to 55 for mask registers, and one
/// for each flag from 56 on.
type Set = u64;

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

/// The registers, flags and memory that an instruction reads and writes.
#[derive(Clone, Copy)]
pub(super) struct Effects {
    reads: Set,
    writes: Set,
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
            reads_memory: false,
            writes_memory: false,
            operand: operand(instruction),
        };
        for used in info.used_registers() {
            let (place, (reads, writes)) = (place(used.register()), access(used.access()));
            effects.reads |= if reads { place } else { 0 };
            effects.writes |= if writes { place } else { 0 };
        }
        for used in info.used_memory() {
            let (reads, writes) = access(used.access());
            effects.reads_memory |= reads;
            effects.writes_memory |= writes;
        }
        effects
    }

    /// True if the result of two instructions may depend on their order.
    pub(super) fn conflict(&self, next: &Effects) -> bool {
        let touches = self.writes_memory && (next.reads_memory || next.writes_memory)
            || self.reads_memory && next.writes_memory;
        self.writes & (next.reads | next.writes) != 0
            || self.reads & next.writes != 0
            || touches && self.overlaps(next)
    }

    /// False if the two instructions access different places of one array. Neither instruction may change a register of the addresses.
    fn overlaps(&self, next: &Effects) -> bool {
        let (Some((base, x, size_x)), Some((other, y, size_y))) = (self.operand, next.operand) else {
            return true;
        };
        base != other || x.wrapping_sub(y) < size_y || y.wrapping_sub(x) < size_x
    }
}

/// The memory operand of an instruction. `None` if its address is relative to the instruction, or if the instruction
/// has two memory operands.
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
