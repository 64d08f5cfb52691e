//! Moves between registers and memory.

use std::array::from_fn;

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use crate::machine::{Bytes, Kind, Machine, Step, Stop};
use crate::value::{Domain, Shift};

// General registers.

pub(super) fn zero_extended<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let bytes = m.read(i, 1)?;
    m.write(i, 0, &bytes)
}

/// The bytes of a number of `size` bytes with the sign extended to 8 bytes.
fn extended<D: Domain>(m: &mut Machine<D>, bytes: &Bytes<D>, size: usize) -> Bytes<D> {
    let mut lane = [D::constant(0); 64];
    lane[8 - size..8].copy_from_slice(&bytes[..size]);
    m.domain.shift(&mut lane[..8], Shift::Arithmetic, 8 * (8 - size) as u32);
    lane
}

pub(super) fn sign_extended<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let (bytes, size) = (m.read(i, 1)?, m.size(i, 1));
    let bytes = extended(m, &bytes, size);
    m.write(i, 0, &bytes)
}

/// CBW, CWDE and CDQE extend the accumulator in its place; CWD, CDQ and CQO extend it to RDX.
pub(super) fn accumulator_extended<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    use Register::{AL, AX, DX, EAX, EDX, RAX, RDX};
    let (from, to, is_high) = match i.mnemonic() {
        Mnemonic::Cbw => (AL, AX, false),
        Mnemonic::Cwde => (AX, EAX, false),
        Mnemonic::Cdqe => (EAX, RAX, false),
        Mnemonic::Cwd => (AX, DX, true),
        Mnemonic::Cdq => (EAX, EDX, true),
        _ => (RAX, RDX, true),
    };
    let bytes = m.register(from);
    let mut bytes = extended(m, &bytes, from.size());
    if is_high {
        m.domain.shift(&mut bytes[..8], Shift::Arithmetic, 63);
    }
    m.set_general(to, &bytes);
    Ok(())
}

fn reversed<D: Domain>(bytes: &Bytes<D>, size: usize) -> Bytes<D> {
    from_fn(|place| if place < size { bytes[size - 1 - place] } else { D::constant(0) })
}

pub(super) fn swapped_bytes<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let (bytes, size) = (m.read(i, 1)?, m.size(i, 0));
    m.write(i, 0, &reversed::<D>(&bytes, size))
}

pub(super) fn byte_swap<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let (bytes, size) = (m.read(i, 0)?, m.size(i, 0));
    if size == 2 {
        return Err(m.stop("BSWAP of 16 bits is undefined"));
    }
    m.write(i, 0, &reversed::<D>(&bytes, size))
}

/// LEA does not access memory, so its result may depend on secrets.
pub(super) fn lea<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let address = m.effective_address(i);
    m.set_general(i.op0_register(), &address);
    Ok(())
}

pub(super) fn exchange<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let (x, y) = (m.read(i, 0)?, m.read(i, 1)?);
    m.write(i, 0, &y)?;
    m.write(i, 1, &x)
}

pub(super) fn push<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let bytes = m.read(i, 0)?;
    if i.op0_kind() == OpKind::Register && i.op0_register().size() != 8 {
        return Err(m.stop("a push of less than 8 bytes has no semantics"));
    }
    m.push_bytes(&bytes[..8])
}

pub(super) fn pop<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let bytes = m.pop()?;
    m.write(i, 0, &bytes)
}

pub(super) fn conditional<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let flag = m.condition(i.condition_code())?;
    let (y, x) = (m.read(i, 0)?, m.read(i, 1)?);
    let chosen = from_fn(|place| m.domain.select(flag, x[place], y[place]));
    m.write(i, 0, &chosen)
}

pub(super) fn set<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let flag = m.condition(i.condition_code())?;
    let mut bytes = [D::constant(0); 64];
    bytes[0] = m.domain.select(flag, D::constant(1), D::constant(0));
    m.write(i, 0, &bytes)
}

/// Returns the number of repetitions of a string instruction, and sets the register that contains it to zero.
fn repetitions<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Result<u64, Stop> {
    if !i.has_rep_prefix() {
        return Ok(1);
    }
    let count = m.register(Register::RCX);
    let count = m.public(Kind::Time, "number of repetitions", &count[..8])?;
    m.set_number(Register::RCX, 0);
    Ok(count)
}

/// Returns the address in a register, and increases the register by `by`.
fn advanced<D: Domain>(m: &mut Machine<D>, register: Register, by: u64) -> Result<u64, Stop> {
    let address = m.register(register);
    let address = m.public(Kind::Address, "address", &address[..8])?;
    m.set_number(register, address.wrapping_add(by));
    Ok(address)
}

/// STOS. The direction flag is clear, as at the boundaries of functions.
pub(super) fn store_string<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let size = i.memory_size().size();
    let (bytes, count) = (m.register(Register::RAX), repetitions(m, i)?);
    let start = advanced(m, Register::RDI, count * size as u64)?;
    for index in 0..count {
        m.store(start + index * size as u64, &bytes[..size])?;
    }
    Ok(())
}

/// MOVS. MOVSD is also the name of an instruction on vectors. The direction flag is clear, as at the boundaries of functions.
pub(super) fn move_string<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    if !i.is_string_instruction() {
        return low(m, i);
    }
    let size = i.memory_size().size();
    let count = repetitions(m, i)?;
    let from = advanced(m, Register::RSI, count * size as u64)?;
    let to = advanced(m, Register::RDI, count * size as u64)?;
    for index in 0..count {
        let bytes = m.load(from + index * size as u64, size)?;
        m.store(to + index * size as u64, &bytes[..size])?;
    }
    Ok(())
}

// Vector registers.

/// The number of bytes of an element to which one bit of a mask belongs.
fn element(mnemonic: Mnemonic) -> usize {
    match mnemonic {
        Mnemonic::Vmovdqu8 => 1,
        Mnemonic::Vmovdqu16 => 2,
        Mnemonic::Vmovdqu32 | Mnemonic::Vmovdqa32 => 4,
        _ => 8,
    }
}

pub(super) fn vector<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    if i.has_op_mask() {
        return masked(m, i);
    }
    let bytes = m.read(i, 1)?;
    m.write(i, 0, &bytes)
}

/// A move of the elements whose bits in a mask are set. Only these elements of memory are accessed.
fn masked<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    use Mnemonic::{Vmovdqa32, Vmovdqa64, Vmovdqu8, Vmovdqu16, Vmovdqu32, Vmovdqu64};
    if !matches!(i.mnemonic(), Vmovdqu8 | Vmovdqu16 | Vmovdqu32 | Vmovdqu64 | Vmovdqa32 | Vmovdqa64) {
        return Err(m.stop("this move with a mask has no semantics"));
    }
    let mask = m.register(i.op_mask());
    let mask = m.public(Kind::Address, "mask", &mask[..8])?;
    let (size, element) = (m.size(i, 0), element(i.mnemonic()));
    let selected = (0..size).step_by(element).filter(|place| mask >> (place / element) & 1 == 1);
    if i.op0_kind() == OpKind::Memory {
        let (address, bytes) = (m.address(i)?, m.read(i, 1)?);
        for place in selected {
            m.store(address + place as u64, &bytes[place..place + element])?;
        }
        return Ok(());
    }
    let mut result = if i.zeroing_masking() { [D::constant(0); 64] } else { m.read(i, 0)? };
    let source = if i.op1_kind() == OpKind::Memory { Err(m.address(i)?) } else { Ok(m.read(i, 1)?) };
    for place in selected {
        let bytes = match &source {
            Ok(bytes) => from_fn(|index| *bytes.get(place + index).unwrap_or(&D::constant(0))),
            Err(address) => m.load(address + place as u64, element)?,
        };
        result[place..place + element].copy_from_slice(&bytes[..element]);
    }
    m.set_vector(i.op0_register(), &result, false);
    Ok(())
}

/// MOVD, MOVQ, and MOVSS and MOVSD with a memory operand: move the low bytes. In a vector register, the bytes above them are cleared.
pub(super) fn low<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let single =
        matches!(i.mnemonic(), Mnemonic::Movss | Mnemonic::Vmovss | Mnemonic::Movsd | Mnemonic::Vmovsd);
    let has_memory = (0..i.op_count()).any(|operand| i.op_kind(operand) == OpKind::Memory);
    if single && !has_memory {
        return Err(m.stop("a merging move has no semantics"));
    }
    let is_general = |operand| i.op_kind(operand) == OpKind::Register && i.op_register(operand).is_gpr();
    let size = match (0..2).find(|operand| is_general(*operand)) {
        Some(operand) => i.op_register(operand).size(),
        None if has_memory => i.memory_size().size(),
        None => 8,
    };
    let mut bytes = m.read(i, 1)?;
    bytes[size..].fill(D::constant(0));
    m.write(i, 0, &bytes)
}

/// Moves of 8 bytes to or from one half of a register of 16 bytes.
pub(super) fn half<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    use Mnemonic::*;
    let to_high = matches!(i.mnemonic(), Movhps | Movhpd | Vmovhps | Vmovhpd | Movlhps | Vmovlhps);
    if i.op0_kind() == OpKind::Memory {
        let bytes = m.read(i, 1)?;
        let start = if to_high { 8 } else { 0 };
        return m.write(i, 0, &from_fn(|place| bytes[(start + place) % 64]));
    }
    let (mut bytes, source) = m.sources(i)?;
    let from = if matches!(i.mnemonic(), Movhlps | Vmovhlps) { 8 } else { 0 };
    let to = if to_high { 8 } else { 0 };
    bytes[to..to + 8].copy_from_slice(&source[from..from + 8]);
    m.write(i, 0, &bytes)
}

pub(super) fn insert<D: Domain, const N: usize>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let (mut bytes, source) = m.sources(i)?;
    let place = m.constant(i)? % (16 / N) * N;
    bytes[place..place + N].copy_from_slice(&source[..N]);
    m.write(i, 0, &bytes)
}

pub(super) fn extract<D: Domain, const N: usize>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let bytes = m.read(i, 1)?;
    let place = m.constant(i)? % (16 / N) * N;
    let mut result = [D::constant(0); 64];
    result[..N].copy_from_slice(&bytes[place..place + N]);
    m.write(i, 0, &result)
}

pub(super) fn insert_vector<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let (mut bytes, source, size, part) = (m.read(i, 1)?, m.read(i, 2)?, m.size(i, 0), m.size(i, 2));
    let place = m.constant(i)? % (size / part) * part;
    bytes[place..place + part].copy_from_slice(&source[..part]);
    m.write(i, 0, &bytes)
}

pub(super) fn extract_vector<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let (bytes, size, part) = (m.read(i, 1)?, m.size(i, 1), m.size(i, 0));
    let place = m.constant(i)? % (size / part) * part;
    let mut result = [D::constant(0); 64];
    result[..part].copy_from_slice(&bytes[place..place + part]);
    m.write(i, 0, &result)
}

pub(super) fn broadcast<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    use Mnemonic::*;
    let bytes = m.read(i, 1)?;
    let size = match i.mnemonic() {
        // The low half of each lane of 16 bytes.
        Movddup | Vmovddup => return m.write(i, 0, &from_fn(|place| bytes[place / 16 * 16 + place % 8])),
        Vpbroadcastb => 1,
        Vpbroadcastw => 2,
        Vpbroadcastd | Vbroadcastss => 4,
        Vpbroadcastq | Vbroadcastsd => 8,
        Vbroadcasti32x8 | Vbroadcasti64x4 | Vbroadcastf64x4 => 32,
        _ => 16,
    };
    m.write(i, 0, &from_fn(|place| bytes[place % size]))
}

/// VZEROUPPER and VZEROALL, which do not change the registers 16 to 31.
pub(super) fn zero_registers<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let keeps_low = i.mnemonic() == Mnemonic::Vzeroupper;
    for index in 0..16 {
        let register = Register::XMM0 + index;
        let bytes = if keeps_low { m.register(register) } else { [D::constant(0); 64] };
        m.set_vector(register, &bytes, false);
    }
    Ok(())
}
