//! Modes of packing and unpacking (Broadcom's guide, tables 12 to 14).

/// Unpacks a register of file A as an input of an operation. `mode` is the value of the field UNPACK, from 0 to 7. Mode 0 means
/// no unpacking. Modes 1 and 2 select the lower and the upper half. Mode 3 selects the highest byte, copied four times. Modes 4
/// to 7 select one of the four bytes. If the operation works on floats, a half or a byte is converted to a float, and a byte
/// becomes a float from 0 to 1. Otherwise a half becomes a signed integer, and a byte an unsigned integer.
pub fn unpack(mode: u8, value: u32, is_float: bool) -> u32 {
    let half = |half: u16| if is_float { half_to_float(half) } else { half as i16 as u32 };
    let byte = |byte: u32| if is_float { byte_to_float(byte as u8) } else { byte & 0xff };
    match mode & 7 {
        0 => value,
        1 => half(value as u16),
        2 => half((value >> 16) as u16),
        3 => (value >> 24) * 0x0101_0101,
        mode => byte(value >> (8 * (u32::from(mode) - 4))),
    }
}

/// Unpacks r4. Bytes always become floats from 0 to 1.
pub fn unpack_r4(mode: u8, value: u32, is_float: bool) -> u32 {
    unpack(mode, value, is_float || mode >= 4)
}

/// Returns the new content of a register of file A with the old content `old`. `mode` is the value of the field PACK, from 0 to
/// 15. Mode 0 means no packing. Modes 1 and 2 write the lower and the upper half. Mode 3 writes the lowest byte of the value to
/// all four bytes. Modes 4 to 7 write one of the four bytes. Modes 8 to 15 do the same as modes 0 to 7, but limit the value to
/// the range of the destination. Bits that are not written are kept.
///
/// `exact` is the sum or the difference without overflow. It is used if a value is limited to 32 bits.
pub fn pack_file_a(mode: u8, old: u32, value: u32, is_float: bool, exact: i64) -> u32 {
    let limited = mode & 8 != 0;
    let half = |value: u32| match (is_float, limited) {
        (true, _) => u32::from(float_to_half(value)),
        (false, true) => (value as i32).clamp(-0x8000, 0x7fff) as u32 & 0xffff,
        (false, false) => value & 0xffff,
    };
    let byte = |value: u32| if limited { (value as i32).clamp(0, 255) as u32 } else { value & 0xff };
    match mode & 7 {
        0 if limited => exact.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u32,
        0 => value,
        1 => old & 0xffff_0000 | half(value),
        2 => old & 0x0000_ffff | half(value) << 16,
        3 => byte(value) * 0x0101_0101,
        mode => {
            let shift = 8 * (u32::from(mode) - 4);
            old & !(0xff << shift) | byte(value) << shift
        }
    }
}

/// Returns the new content of a register or accumulator with the old content `old`, for a packing of the mul ALU. A float from
/// 0 to 1 is converted to a byte, which is written to all four bytes or to one of them. Returns `None` for a mode that the mul
/// ALU does not have.
pub fn pack_mul(mode: u8, old: u32, value: u32) -> Option<u32> {
    let byte = u32::from(float_to_byte(value));
    match mode {
        0 => Some(value),
        3 | 11 => Some(byte * 0x0101_0101),
        4..8 | 12..16 => {
            let shift = 8 * (u32::from(mode & 7) - 4);
            Some(old & !(0xff << shift) | byte << shift)
        }
        _ => None,
    }
}

fn byte_to_float(byte: u8) -> u32 {
    (f32::from(byte) / 255.0).to_bits()
}

fn float_to_byte(bits: u32) -> u8 {
    (f32::from_bits(bits).clamp(0.0, 1.0) * 255.0).round() as u8
}

/// Converts a float of 16 bits to one of 32 bits. Denormal floats become zero.
fn half_to_float(half: u16) -> u32 {
    let (sign, exponent, fraction) =
        (u32::from(half >> 15) << 31, u32::from(half >> 10 & 31), u32::from(half & 0x3ff));
    match exponent {
        0 => sign,
        // The biases of the exponents are 15 and 127.
        _ => sign | (exponent + 127 - 15) << 23 | fraction << 13,
    }
}

/// Converts to a float of 16 bits, rounded towards zero. Numbers that are too large become the largest float.
fn float_to_half(bits: u32) -> u16 {
    let sign = (bits >> 16 & 0x8000) as u16;
    let exponent = (bits >> 23 & 0xff) as i32 - 127 + 15;
    match exponent {
        ..=0 => sign,
        31.. => sign | 0x7bff,
        _ => sign | (exponent as u16) << 10 | (bits >> 13 & 0x3ff) as u16,
    }
}
