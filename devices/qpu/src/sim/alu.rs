//! The operations of both ALUs.

use super::Outcome;
use super::qpu::Vector;
use crate::isa::{AddOp, ELEMENTS, MulOp};

/// The results of an ALU.
#[derive(Clone, Copy)]
pub(super) struct Results {
    pub(super) values: Vector,
    /// The flag C of all elements as a mask, if the instruction sets flags. Otherwise zero.
    pub(super) carry: Vector,
}

impl Results {
    /// The initial value, before the results are computed.
    pub(super) const NONE: Results = Results::of([0; ELEMENTS]);

    /// Results without carries.
    pub(super) const fn of(values: Vector) -> Results {
        Results { values, carry: [0; ELEMENTS] }
    }

    /// Rotates by a number of elements, among all elements or only within quads.
    pub(super) fn rotated(&self, by: usize, within_quads: bool) -> Results {
        let from = |index: usize| match within_quads {
            true => index & !3 | (index.wrapping_sub(by) & 3),
            false => index.wrapping_sub(by) & 15,
        };
        Results {
            values: std::array::from_fn(|index| self.values[from(index)]),
            carry: std::array::from_fn(|index| self.carry[from(index)]),
        }
    }
}

/// Computes all elements. There is a separate loop for each operation, so that the compiler can use vector instructions.
/// Carries are computed only if they are needed.
macro_rules! by_operation {
    ($type:ident, $of:expr, $a:expr, $b:expr, $carries:expr, $results:expr, $($name:ident)*) => {
        match $of {
            $($type::$name => elements($a, $b, $carries, $results, |a, b| $type::$name.compute(a, b)),)*
        }
    };
}

#[inline(always)]
fn elements(
    a: &Vector,
    b: &Vector,
    carries: bool,
    results: &mut Results,
    compute: impl Fn(u32, u32) -> Outcome,
) {
    for index in 0..ELEMENTS {
        results.values[index] = compute(a[index], b[index]).value;
    }
    if carries {
        for index in 0..ELEMENTS {
            results.carry[index] = u32::from(compute(a[index], b[index]).carry).wrapping_neg();
        }
    }
}

/// Converts bits to a float. A denormal float becomes zero.
fn float(bits: u32) -> f32 {
    let value = f32::from_bits(bits);
    if value.is_subnormal() { 0.0 } else { value }
}

fn bits(value: f32) -> u32 {
    if value.is_subnormal() { 0 } else { value.to_bits() }
}

/// Applies an operation to each of the four bytes of a word.
#[inline(always)]
fn bytes(a: u32, b: u32, operation: impl Fn(u8, u8) -> u8) -> u32 {
    let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
    u32::from_le_bytes(std::array::from_fn(|i| operation(a[i], b[i])))
}

/// The product of two bytes as fractions of 255. No document states how the hardware rounds this product. AES on the hardware
/// requires that the product of 0x80 and 0xFD is 0x7F.
#[inline(always)]
fn product_of_fractions(a: u8, b: u8) -> u8 {
    // For x < 65535: x / 255 = (x + 1 + x / 256) / 256.
    let x = u16::from(a) * u16::from(b) + 127;
    ((x + 1 + (x >> 8)) >> 8) as u8
}

/// Applies an operation to each of the 64 bytes of a register.
#[inline(always)]
fn all_bytes(a: &Vector, b: &Vector, results: &mut Results, operation: impl Fn(u8, u8) -> u8) {
    let (mut x, mut y) = ([0u8; 4 * ELEMENTS], [0u8; 4 * ELEMENTS]);
    for index in 0..ELEMENTS {
        x[4 * index..4 * index + 4].copy_from_slice(&a[index].to_le_bytes());
        y[4 * index..4 * index + 4].copy_from_slice(&b[index].to_le_bytes());
    }
    for (x, y) in x.iter_mut().zip(&y) {
        *x = operation(*x, *y);
    }
    for (value, bytes) in results.values.iter_mut().zip(x.chunks_exact(4)) {
        *value = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    }
}

impl AddOp {
    /// True if the inputs are floats. The conversion by unpacking depends on this property.
    pub const fn takes_floats(self) -> bool {
        use AddOp::*;
        matches!(self, Fadd | Fsub | Fmin | Fmax | Fminabs | Fmaxabs | Ftoi)
    }

    /// True if the result is a float. The conversion by packing depends on this property.
    pub const fn gives_float(self) -> bool {
        use AddOp::*;
        matches!(self, Fadd | Fsub | Fmin | Fmax | Fminabs | Fmaxabs | Itof)
    }

    /// The results for all elements.
    pub(super) fn compute_all(self, a: &Vector, b: &Vector, carries: bool, results: &mut Results) {
        match self {
            AddOp::V8adds => return all_bytes(a, b, results, u8::saturating_add),
            AddOp::V8subs => return all_bytes(a, b, results, u8::saturating_sub),
            _ => {}
        }
        by_operation!(AddOp, self, a, b, carries, results, Nop Fadd Fsub Fmin Fmax Fminabs Fmaxabs Ftoi Itof Add Sub Shr Asr Ror Shl Min
            Max And Or Xor Not Clz V8adds V8subs)
    }

    /// The result for an element. The result of [`AddOp::Nop`] is 0.
    #[inline(always)]
    pub fn compute(self, a: u32, b: u32) -> Outcome {
        let (x, y) = (float(a), float(b));
        let (i, j) = (a as i32, b as i32);
        let count = b & 31;
        let plain = |value: u32| (value, false);
        // The last bit that a shift has moved out.
        let last_bit = |from: u32, at: u32| count > 0 && from >> at & 1 == 1;
        let of_float = |value: f32| (bits(value), value > 0.0);
        let (value, carry) = match self {
            AddOp::Nop => plain(0),
            AddOp::Fadd => of_float(x + y),
            AddOp::Fsub => of_float(x - y),
            AddOp::Fmin => (bits(if x > y { y } else { x }), x > y),
            AddOp::Fmax => (bits(if x > y { x } else { y }), x > y),
            AddOp::Fminabs => (bits(if x.abs() > y.abs() { y.abs() } else { x.abs() }), x.abs() > y.abs()),
            AddOp::Fmaxabs => (bits(if x.abs() > y.abs() { x.abs() } else { y.abs() }), x.abs() > y.abs()),
            AddOp::Ftoi => plain(x as i32 as u32),
            AddOp::Itof => plain(bits(i as f32)),
            AddOp::Add => a.overflowing_add(b),
            AddOp::Sub => a.overflowing_sub(b),
            AddOp::Shr => (a >> count, last_bit(a, count.wrapping_sub(1) & 31)),
            AddOp::Asr => ((i >> count) as u32, last_bit(a, count.wrapping_sub(1) & 31)),
            AddOp::Ror => plain(a.rotate_right(count)),
            AddOp::Shl => (a << count, last_bit(a, 32u32.wrapping_sub(count) & 31)),
            AddOp::Min => (i.min(j) as u32, i > j),
            AddOp::Max => (i.max(j) as u32, i > j),
            AddOp::And => plain(a & b),
            AddOp::Or => plain(a | b),
            AddOp::Xor => plain(a ^ b),
            AddOp::Not => plain(!a),
            AddOp::Clz => plain(a.leading_zeros()),
            AddOp::V8adds => plain(bytes(a, b, u8::saturating_add)),
            AddOp::V8subs => plain(bytes(a, b, u8::saturating_sub)),
        };
        Outcome { value, carry }
    }
}

impl MulOp {
    /// True if the inputs and the result are floats.
    pub const fn is_float(self) -> bool {
        matches!(self, MulOp::Fmul)
    }

    /// The results for all elements.
    pub(super) fn compute_all(self, a: &Vector, b: &Vector, carries: bool, results: &mut Results) {
        match self {
            MulOp::V8muld => return all_bytes(a, b, results, product_of_fractions),
            MulOp::V8min => return all_bytes(a, b, results, u8::min),
            MulOp::V8max => return all_bytes(a, b, results, u8::max),
            MulOp::V8adds => return all_bytes(a, b, results, u8::saturating_add),
            MulOp::V8subs => return all_bytes(a, b, results, u8::saturating_sub),
            _ => {}
        }
        by_operation!(MulOp, self, a, b, carries, results, Nop Fmul Mul24 V8muld V8min V8max V8adds V8subs)
    }

    /// The result for an element. The result of [`MulOp::Nop`] is 0, although the hardware repeats an earlier result.
    #[inline(always)]
    pub fn compute(self, a: u32, b: u32) -> Outcome {
        let plain = |value: u32| (value, false);
        let (value, carry) = match self {
            MulOp::Nop => plain(0),
            MulOp::Fmul => plain(bits(float(a) * float(b))),
            MulOp::Mul24 => {
                let product = u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff);
                (product as u32, product > 0xff_ffff)
            }
            MulOp::V8muld => plain(bytes(a, b, product_of_fractions)),
            MulOp::V8min => plain(bytes(a, b, u8::min)),
            MulOp::V8max => plain(bytes(a, b, u8::max)),
            MulOp::V8adds => plain(bytes(a, b, u8::saturating_add)),
            MulOp::V8subs => plain(bytes(a, b, u8::saturating_sub)),
        };
        Outcome { value, carry }
    }
}
