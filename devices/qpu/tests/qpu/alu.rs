//! Tests of the operations of both ALUs.

use lockstep_qpu::isa::{AddOp, MulOp};
use lockstep_qpu::sim::{pack_file_a, pack_mul, unpack, unpack_r4};

fn add(op: AddOp, a: u32, b: u32) -> (u32, bool) {
    let outcome = op.compute(a, b);
    (outcome.value, outcome.carry)
}

fn mul(op: MulOp, a: u32, b: u32) -> (u32, bool) {
    let outcome = op.compute(a, b);
    (outcome.value, outcome.carry)
}

#[test]
fn integers() {
    for (op, a, b, expected) in [
        (AddOp::Add, 0xffff_ffff, 2, (1, true)),
        (AddOp::Add, 1, 2, (3, false)),
        (AddOp::Sub, 1, 2, (0xffff_ffff, true)),
        (AddOp::Sub, 2, 1, (1, false)),
        // The carry of a shift is the last bit that the shift removes.
        (AddOp::Shr, 0b110, 2, (1, true)),
        (AddOp::Shr, 0b110, 1, (3, false)),
        (AddOp::Shr, 0b111, 32, (0b111, false)),
        (AddOp::Asr, 0x8000_0001, 1, (0xc000_0000, true)),
        (AddOp::Shl, 0x4000_0000, 2, (0, true)),
        (AddOp::Shl, 0x8000_0000, 2, (0, false)),
        (AddOp::Shl, 5, 0, (5, false)),
        (AddOp::Ror, 1, 1, (0x8000_0000, false)),
        (AddOp::Min, 0xffff_ffff, 1, (0xffff_ffff, false)),
        (AddOp::Max, 1, 0xffff_ffff, (1, true)),
        (AddOp::Clz, 0x0000_1000, 0, (19, false)),
        (AddOp::Not, 0x0f0f_0f0f, 7, (0xf0f0_f0f0, false)),
        (AddOp::V8adds, 0x01ff_8080, 0x01ff_7f80, (0x02ff_ffff, false)),
        (AddOp::V8subs, 0x0100_8080, 0x0201_7f80, (0x0000_0100, false)),
    ] {
        assert_eq!(add(op, a, b), expected, "{op:?} {a:#x} {b:#x}");
    }
    assert_eq!(mul(MulOp::Mul24, 0xff00_0003, 0xff00_0005), (15, false));
    assert_eq!(mul(MulOp::Mul24, 0x1000, 0x1000), (0x100_0000, true));
    assert_eq!(mul(MulOp::V8min, 0x0102_0304, 0x0403_0201), (0x0102_0201, false));
    assert_eq!(mul(MulOp::V8max, 0x0102_0304, 0x0403_0201), (0x0403_0304, false));
}

/// The product of bytes, as AES uses it. Doubling in the field of AES needs 0x80 * 0xFD to be rounded up. Shifts need exact products of a
/// power of two and a byte whose lower bits are zero.
#[test]
fn products_of_bytes() {
    assert_eq!(mul(MulOp::V8muld, 0x80ff_0001, 0xfdff_ff7f).0, 0x7fff_0000);
    for byte in 0..=255u32 {
        for (by, shift) in [(0x80, 1), (0x40, 2), (0x10, 4)] {
            let masked = byte & (0xff << shift & 0xff);
            assert_eq!(mul(MulOp::V8muld, masked, by).0, masked >> shift, "{masked:#x} by {by:#x}");
        }
        assert_eq!(mul(MulOp::V8muld, byte, 0xff).0, byte);
    }
}

#[test]
fn floats() {
    let of = |op: AddOp, a: f32, b: f32| {
        let (value, carry) = add(op, a.to_bits(), b.to_bits());
        (f32::from_bits(value), carry)
    };
    assert_eq!(of(AddOp::Fadd, 1.5, 2.0), (3.5, true));
    assert_eq!(of(AddOp::Fsub, 1.5, 2.0), (-0.5, false));
    assert_eq!(of(AddOp::Fmin, 1.5, -2.0), (-2.0, true));
    assert_eq!(of(AddOp::Fmax, 1.5, -2.0), (1.5, true));
    assert_eq!(of(AddOp::Fminabs, -1.5, 2.0), (1.5, false));
    assert_eq!(of(AddOp::Fmaxabs, -1.5, 1.0), (1.5, true));
    assert_eq!(of(AddOp::Fadd, f32::MIN_POSITIVE / 2.0, 0.0), (0.0, false));
    assert_eq!(add(AddOp::Ftoi, (-2.9f32).to_bits(), 0).0 as i32, -2);
    assert_eq!(f32::from_bits(add(AddOp::Itof, -7i32 as u32, 0).0), -7.0);
    assert_eq!(f32::from_bits(mul(MulOp::Fmul, 1.5f32.to_bits(), 2.0f32.to_bits()).0), 3.0);
}

#[test]
fn unpacking() {
    let value = 0x8182_8384;
    let integers = [value, 0xffff_8384, 0xffff_8182, 0x8181_8181, 0x84, 0x83, 0x82, 0x81];
    for (mode, expected) in (0..).zip(integers) {
        assert_eq!(unpack(mode, value, false), expected, "{mode}");
    }
    // The low half of the word is 1.0 and the high half is -2.0, as floats of 16 bits. The byte 255 is unpacked to 1.0.
    assert_eq!([1, 2].map(|mode| f32::from_bits(unpack(mode, 0xc000_3c00, true))), [1.0, -2.0]);
    assert_eq!(f32::from_bits(unpack(4, 0xff, true)), 1.0);
    // Bytes of r4 become floats even for integer operations, so r4 cannot be used for tables of bytes.
    assert_eq!(f32::from_bits(unpack_r4(5, 0xff00, false)), 1.0);
    assert_eq!(unpack_r4(1, 0xffff, false), 0xffff_ffff);
}

#[test]
fn packing() {
    let old = 0x1111_1111;
    let packed = |mode, value: u32| pack_file_a(mode, old, value, false, i64::from(value as i32));
    let value = 0x1234_5678;
    let plain =
        [value, 0x1111_5678, 0x5678_1111, 0x7878_7878, 0x1111_1178, 0x1111_7811, 0x1178_1111, 0x7811_1111];
    for (mode, expected) in (0..).zip(plain) {
        assert_eq!(packed(mode, value), expected, "{mode}");
    }
    let limited =
        [value, 0x1111_7fff, 0x7fff_1111, 0xffff_ffff, 0x1111_11ff, 0x1111_ff11, 0x11ff_1111, 0xff11_1111];
    for (mode, expected) in (8..).zip(limited) {
        assert_eq!(packed(mode, value), expected, "{mode}");
    }
    assert_eq!(packed(12, -5i32 as u32), 0x1111_1100);
    assert_eq!(packed(9, -40_000i32 as u32), 0x1111_8000);
    // A sum that overflows is limited to the largest integer.
    assert_eq!(pack_file_a(8, 0, 0x8000_0000, false, 1 << 31), 0x7fff_ffff);
    assert_eq!(pack_file_a(1, old, (-2.0f32).to_bits(), true, 0), 0x1111_c000);
    assert_eq!(pack_mul(5, old, 0.5f32.to_bits()), Some(0x1111_8011));
    assert_eq!(pack_mul(3, old, 7.0f32.to_bits()), Some(0xffff_ffff));
    assert_eq!(pack_mul(1, old, 0), None);
}
