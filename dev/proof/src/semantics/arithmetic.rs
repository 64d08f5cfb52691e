//! Arithmetic on general registers.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use super::operands::are_same;
use crate::machine::{Bytes, Flags, Kind, Machine, Step, Stop};
use crate::value::{Domain, Flag, Number, low_bits};

impl<D: Domain> Machine<D> {
    /// Sets SF, ZF and PF for a result of `size` bytes.
    pub(crate) fn set_result_flags(&mut self, result: &[D::Byte]) {
        let number = Number::of::<D>(result);
        let top = 8 * result.len() - 1;
        // A public bit that is set makes the result different from zero.
        let known = number.value & !number.secret != 0;
        self.flags.zero = Flag::new(number.value == 0, number.is_secret() && !known);
        self.flags.sign = Flag::new(number.value >> top & 1 == 1, number.secret >> top & 1 == 1);
        let (low, low_secret) = (number.value as u8, number.secret as u8);
        self.flags.parity = Flag::new(low.count_ones() % 2 == 0, low_secret != 0);
    }

    /// Computes the sum of `x`, `y` and a carry, and sets the flags. If `inverts` is true, computes the difference: `y`, the carry before
    /// and the carry after the addition are inverted.
    pub(crate) fn sum(&mut self, x: &[D::Byte], y: &[D::Byte], carry: Flag, inverts: bool) -> Bytes<D> {
        let size = x.len();
        let mut inverted = [D::constant(0); 8];
        for (place, byte) in inverted.iter_mut().zip(y) {
            *place = if inverts { self.domain.not(*byte) } else { *byte };
        }
        let carry = Flag { value: carry.value != inverts, ..carry };
        let mut bytes = [D::constant(0); 64];
        self.domain.add(x, &inverted[..size], carry, &mut bytes[..size]);
        let (a, b) = (Number::of::<D>(x), Number::of::<D>(&inverted[..size]));
        let wide = u128::from(a.value) + u128::from(b.value) + u128::from(carry.value);
        let (sum, top) = (wide as u64, 8 * size - 1);
        let is_secret = a.is_secret() || b.is_secret() || carry.secret;
        let overflow = (a.value ^ sum) & (b.value ^ sum);
        // If a bit of an operand is set, the carry cannot become smaller. The carry therefore depends on no secret if it is the
        // same for secret bits that are all zeros and for secret bits that are all ones.
        let extreme = |ones: u64| {
            let number = |number: Number| u128::from(number.value & !number.secret | ones & number.secret);
            let carry = if carry.secret { ones & 1 } else { u64::from(carry.value) };
            (number(a) + number(b) + u128::from(carry)) >> (8 * size)
        };
        let carry_is_secret = extreme(0) != extreme(u64::MAX);
        self.flags.carry = Flag::new((wide >> (8 * size) & 1 == 1) != inverts, carry_is_secret);
        self.flags.overflow = Flag::new(overflow >> top & 1 == 1, is_secret);
        self.set_result_flags(&bytes[..size]);
        bytes
    }

    /// The values of operands 0 and 1, and the size of operand 0 in bytes.
    fn pair(&mut self, i: &Instruction) -> Result<(Bytes<D>, Bytes<D>, usize), Stop> {
        let size = self.size(i, 0);
        Ok((self.read(i, 0)?, self.read(i, 1)?, size))
    }
}

pub(super) fn add<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let (x, y, size) = m.pair(i)?;
    let carry =
        if i.mnemonic() == Mnemonic::Adc { m.defined(m.flags.carry)? } else { Flag::new(false, false) };
    let sum = m.sum(&x[..size], &y[..size], carry, false);
    m.write(i, 0, &sum)
}

pub(super) fn subtract<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let (mut x, mut y, size) = m.pair(i)?;
    if are_same(i, 0, 1) {
        (x, y) = ([D::constant(0); 64], [D::constant(0); 64]);
    }
    let borrow =
        if i.mnemonic() == Mnemonic::Sbb { m.defined(m.flags.carry)? } else { Flag::new(false, false) };
    let difference = m.sum(&x[..size], &y[..size], borrow, true);
    if i.mnemonic() == Mnemonic::Cmp { Ok(()) } else { m.write(i, 0, &difference) }
}

/// INC and DEC, which keep CF.
pub(super) fn step<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let (size, carry) = (m.size(i, 0), m.flags.carry);
    let x = m.read(i, 0)?;
    let one: [D::Byte; 8] = 1u64.to_le_bytes().map(D::constant);
    let result = m.sum(&x[..size], &one[..size], Flag::new(false, false), i.mnemonic() == Mnemonic::Dec);
    m.flags.carry = carry;
    m.write(i, 0, &result)
}

pub(super) fn negate<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let (size, x) = (m.size(i, 0), m.read(i, 0)?);
    let result = m.sum(&[D::constant(0); 8][..size], &x[..size], Flag::new(false, false), true);
    m.write(i, 0, &result)
}

/// A number with its sign extended.
fn signed(number: Number, size: usize) -> i128 {
    let unused = 64 - 8 * size;
    i128::from((number.value << unused) as i64 >> unused)
}

/// MUL, IMUL and MULX. Their time does not depend on operands (Intel, Data Operand Independent Timing Instructions).
pub(super) fn multiply<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let is_signed = i.mnemonic() == Mnemonic::Imul;
    let size = m.size(i, 0);
    let (x, y) = match i.op_count() {
        1 => (m.register(Register::RAX), m.read(i, 0)?),
        2 => (m.read(i, 0)?, m.read(i, 1)?),
        _ if i.mnemonic() == Mnemonic::Mulx => (m.register(Register::RDX), m.read(i, 2)?),
        _ => (m.read(i, 1)?, m.read(i, 2)?),
    };
    let numbers = [x, y].map(|bytes| *bytes.first_chunk().expect("more than 8 bytes"));
    let (x, y) = (Number::of::<D>(&x[..size]), Number::of::<D>(&y[..size]));
    let product = if is_signed {
        signed(x, size) * signed(y, size)
    } else {
        (u128::from(x.value) * u128::from(y.value)) as i128
    };
    let is_zero = |x: Number| x.value | x.secret == 0;
    let is_secret = (x.is_secret() || y.is_secret()) && !is_zero(x) && !is_zero(y);
    let mut part = |bits: i128| m.opaque(bits as u64 & low_bits(size), is_secret);
    let (mut low, mut high) = (part(product), part(product >> (8 * size)));
    if is_secret
        && !is_signed
        && size == 8
        && let Some(product) = m.domain.multiply(&numbers[0], &numbers[1])
    {
        low[..8].copy_from_slice(&product[..8]);
        high[..8].copy_from_slice(&product[8..]);
    }
    let fits = if is_signed {
        signed(Number { value: product as u64, secret: 0 }, size) == product
    } else {
        product as u128 >> (8 * size) == 0
    };
    if i.mnemonic() == Mnemonic::Mulx {
        m.write(i, 1, &low)?;
        return m.write(i, 0, &high);
    }
    m.flags = Flags {
        carry: Flag::new(!fits, is_secret),
        overflow: Flag::new(!fits, is_secret),
        ..Flags::UNDEFINED
    };
    if i.op_count() > 1 {
        return m.write(i, 0, &low);
    }
    if size == 1 {
        let both: Bytes<D> = std::array::from_fn(|place| if place == 1 { high[0] } else { low[place] });
        m.set_general(Register::AX, &both);
        return Ok(());
    }
    let [to_low, to_high] = wide_registers(size);
    m.set_general(to_low, &low);
    m.set_general(to_high, &high);
    Ok(())
}

/// The registers of a product or a dividend of twice `size` bytes.
fn wide_registers(size: usize) -> [Register; 2] {
    match size {
        2 => [Register::AX, Register::DX],
        4 => [Register::EAX, Register::EDX],
        _ => [Register::RAX, Register::RDX],
    }
}

/// DIV and IDIV, whose time depends on their operands.
pub(super) fn divide<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let size = m.size(i, 0);
    let divisor = m.read(i, 0)?;
    if size == 1 {
        return Err(m.stop("a division of 16 bits by 8 bits has no semantics"));
    }
    if i.mnemonic() == Mnemonic::Idiv {
        return Err(m.stop("a signed division has no semantics"));
    }
    let [low, high] = wide_registers(size);
    let operands = [m.register(high), m.register(low), divisor];
    let is_secret = operands.iter().any(|bytes| Number::of::<D>(&bytes[..size]).is_secret());
    let mut values = [0; 3];
    for (value, bytes) in values.iter_mut().zip(&operands) {
        *value = u128::from(m.public(Kind::Time, "division", &bytes[..size])?);
    }
    let [high_value, low_value, divisor] = values;
    let dividend = high_value << (8 * size) | low_value;
    let (Some(quotient), Some(remainder)) = (dividend.checked_div(divisor), dividend.checked_rem(divisor))
    else {
        return Err(m.stop("division by zero"));
    };
    for (register, result) in [(low, quotient), (high, remainder)] {
        let bytes = m.opaque(result as u64, is_secret);
        m.set_general(register, &bytes);
    }
    Ok(())
}

pub(super) fn exchange_add<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let (x, y, size) = m.pair(i)?;
    let sum = m.sum(&x[..size], &y[..size], Flag::new(false, false), false);
    m.write(i, 1, &x)?;
    m.write(i, 0, &sum)
}

/// CMPXCHG of memory, on one thread.
pub(super) fn compare_exchange<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    if i.op0_kind() == OpKind::Register {
        return Err(m.stop("a comparison and exchange of registers has no semantics"));
    }
    let (place, new, size) = m.pair(i)?;
    let accumulator = if size == 1 { Register::AL } else { wide_registers(size)[0] };
    let expected = m.register(accumulator);
    m.sum(&expected[..size], &place[..size], Flag::new(false, false), true);
    if m.decide(m.flags.zero)? {
        return m.write(i, 0, &new);
    }
    m.set_general(accumulator, &place);
    m.write(i, 0, &place)
}
