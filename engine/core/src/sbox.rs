//! The S-box and its inverse as straight-line circuits on bit planes. They use no table, so no address depends on a secret.
//! Bitsliced kernels and key expansions are built on them.
//!
//! Both circuits are by Joan Boyar and René Peralta. The forward circuit has 113 gates; it is their later improvement, with
//! Çağdaş Çalık, of "A New Combinational Logic Minimization Technique with Applications to Cryptology" (SEA 2010). The
//! inverse circuit has 121 gates; for the method see "A Small Depth-16 Circuit for the AES S-Box" (SEC 2012).
//!
//! Each circuit is one function: a list of gates, in the order of the papers.
//!
//! Both circuits omit the affine constant 0x63, and the key schedule includes it instead ([`AFFINE`]). This is possible
//! because ShiftRows and MixColumns do not change the constant (each row of the MixColumns matrix sums to 1).

use std::ops::{BitAnd, BitXor};

/// The constant of the S-box's affine map (FIPS 197, 5.1.1), which the circuits here omit.
pub const AFFINE: u8 = 0x63;

/// `S(x) ^ AFFINE` of every byte whose bit `i` is in plane `i`.
#[inline(always)]
pub fn forward<W: Copy + BitXor<Output = W> + BitAnd<Output = W>>(x: [W; 8]) -> [W; 8] {
    let [u7, u6, u5, u4, u3, u2, u1, u0] = x;

    // Top linear layer.
    let y14 = u3 ^ u5;
    let y13 = u0 ^ u6;
    let y9 = u0 ^ u3;
    let y8 = u0 ^ u5;
    let t0 = u1 ^ u2;
    let y1 = t0 ^ u7;
    let y4 = y1 ^ u3;
    let y12 = y13 ^ y14;
    let y2 = y1 ^ u0;
    let y5 = y1 ^ u6;
    let y3 = y5 ^ y8;
    let t1 = u4 ^ y12;
    let y15 = t1 ^ u5;
    let y20 = t1 ^ u1;
    let y6 = y15 ^ u7;
    let y10 = y15 ^ t0;
    let y11 = y20 ^ y9;
    let y7 = u7 ^ y11;
    let y17 = y10 ^ y11;
    let y19 = y10 ^ y8;
    let y16 = t0 ^ y11;
    let y21 = y13 ^ y16;
    let y18 = u0 ^ y16;

    // Inversion in GF(2^8) over GF(2^4).
    let t2 = y12 & y15;
    let t3 = y3 & y6;
    let t4 = t3 ^ t2;
    let t5 = y4 & u7;
    let t6 = t5 ^ t2;
    let t7 = y13 & y16;
    let t8 = y5 & y1;
    let t9 = t8 ^ t7;
    let t10 = y2 & y7;
    let t11 = t10 ^ t7;
    let t12 = y9 & y11;
    let t13 = y14 & y17;
    let t14 = t13 ^ t12;
    let t15 = y8 & y10;
    let t16 = t15 ^ t12;
    let t17 = t4 ^ y20;
    let t18 = t6 ^ t16;
    let t19 = t9 ^ t14;
    let t20 = t11 ^ t16;
    let t21 = t17 ^ t14;
    let t22 = t18 ^ y19;
    let t23 = t19 ^ y21;
    let t24 = t20 ^ y18;
    let t25 = t21 ^ t22;
    let t26 = t21 & t23;
    let t27 = t24 ^ t26;
    let t28 = t25 & t27;
    let t29 = t28 ^ t22;
    let t30 = t23 ^ t24;
    let t31 = t22 ^ t26;
    let t32 = t31 & t30;
    let t33 = t32 ^ t24;
    let t34 = t23 ^ t33;
    let t35 = t27 ^ t33;
    let t36 = t24 & t35;
    let t37 = t36 ^ t34;
    let t38 = t27 ^ t36;
    let t39 = t29 & t38;
    let t40 = t25 ^ t39;
    let t41 = t40 ^ t37;
    let t42 = t29 ^ t33;
    let t43 = t29 ^ t40;
    let t44 = t33 ^ t37;
    let t45 = t42 ^ t41;
    let z0 = t44 & y15;
    let z1 = t37 & y6;
    let z2 = t33 & u7;
    let z3 = t43 & y16;
    let z4 = t40 & y1;
    let z5 = t29 & y7;
    let z6 = t42 & y11;
    let z7 = t45 & y17;
    let z8 = t41 & y10;
    let z9 = t44 & y12;
    let z10 = t37 & y3;
    let z11 = t33 & y4;
    let z12 = t43 & y13;
    let z13 = t40 & y5;
    let z14 = t29 & y2;
    let z15 = t42 & y9;
    let z16 = t45 & y14;
    let z17 = t41 & y8;

    // Bottom linear layer; s1, s2, s6 and s7 are complemented in the paper.
    let tc1 = z15 ^ z16;
    let tc2 = z10 ^ tc1;
    let tc3 = z9 ^ tc2;
    let tc4 = z0 ^ z2;
    let tc5 = z1 ^ z0;
    let tc6 = z3 ^ z4;
    let tc7 = z12 ^ tc4;
    let tc8 = z7 ^ tc6;
    let tc9 = z8 ^ tc7;
    let tc10 = tc8 ^ tc9;
    let tc11 = tc6 ^ tc5;
    let tc12 = z3 ^ z5;
    let tc13 = z13 ^ tc1;
    let tc14 = tc4 ^ tc12;
    let s3 = tc3 ^ tc11;
    let tc16 = z6 ^ tc8;
    let tc17 = z14 ^ tc10;
    let tc18 = tc13 ^ tc14;
    let s7 = z12 ^ tc18;
    let tc20 = z15 ^ tc16;
    let tc21 = tc2 ^ z11;
    let s0 = tc3 ^ tc16;
    let s6 = tc10 ^ tc18;
    let s4 = tc14 ^ s3;
    let s1 = s3 ^ tc16;
    let tc26 = tc17 ^ tc20;
    let s2 = tc26 ^ z17;
    let s5 = tc21 ^ tc17;

    [s7, s6, s5, s4, s3, s2, s1, s0]
}

/// The inverse of [`forward`]: finds the `x` for which `S(x) ^ AFFINE` is the byte whose bit `i` is in plane `i`.
#[inline(always)]
pub fn inverse<W: Copy + BitXor<Output = W> + BitAnd<Output = W>>(x: [W; 8]) -> [W; 8] {
    let [u7, u6, u5, u4, u3, u2, u1, u0] = x;

    // Top linear layer; y2, y6, y7 and rtl2 are complemented in the paper.
    let y0 = u0 ^ u3;
    let y2 = u1 ^ u3;
    let y4 = u0 ^ y2;
    let rtl0 = u6 ^ u7;
    let y1 = y2 ^ rtl0;
    let y7 = u2 ^ y1;
    let rtl1 = u3 ^ u4;
    let y6 = u7 ^ rtl1;
    let y3 = y1 ^ rtl1;
    let rtl2 = u0 ^ u2;
    let y5 = u5 ^ rtl2;
    let sa1 = y0 ^ y2;
    let sa0 = y1 ^ y3;
    let sb1 = y4 ^ y6;
    let sb0 = y5 ^ y7;
    let ah = y0 ^ y1;
    let al = y2 ^ y3;
    let aa = sa0 ^ sa1;
    let bh = y4 ^ y5;
    let bl = y6 ^ y7;
    let bb = sb0 ^ sb1;

    // Inversion in GF(2^8) over GF(2^4).
    let ab20 = sa0 ^ sb0;
    let ab22 = al ^ bl;
    let ab23 = y3 ^ y7;
    let ab21 = sa1 ^ sb1;
    let abcd1 = ah & bh;
    let rr1 = y0 & y4;
    let ph11 = ab20 ^ abcd1;
    let t01 = y1 & y5;
    let ph01 = t01 ^ abcd1;
    let abcd2 = al & bl;
    let r1 = y2 & y6;
    let pl11 = ab22 ^ abcd2;
    let r2 = y3 & y7;
    let pl01 = r2 ^ abcd2;
    let r3 = sa0 & sb0;
    let vr1 = aa & bb;
    let pr1 = vr1 ^ r3;
    let wr1 = sa1 & sb1;
    let qr1 = wr1 ^ r3;
    let ab0 = ph11 ^ rr1;
    let ab1 = ph01 ^ ab21;
    let ab2 = pl11 ^ r1;
    let ab3 = pl01 ^ qr1;
    let cp1 = ab0 ^ pr1;
    let cp2 = ab1 ^ qr1;
    let cp3 = ab2 ^ pr1;
    let cp4 = ab3 ^ ab23;
    let tinv1 = cp3 ^ cp4;
    let tinv2 = cp3 & cp1;
    let tinv3 = cp2 ^ tinv2;
    let tinv4 = cp1 ^ cp2;
    let tinv5 = cp4 ^ tinv2;
    let tinv6 = tinv5 & tinv4;
    let tinv7 = tinv3 & tinv1;
    let d2 = cp4 ^ tinv7;
    let d0 = cp2 ^ tinv6;
    let tinv8 = cp1 & cp4;
    let tinv9 = tinv4 & tinv8;
    let tinv10 = tinv4 ^ tinv2;
    let d1 = tinv9 ^ tinv10;
    let tinv11 = cp2 & cp3;
    let tinv12 = tinv1 & tinv11;
    let tinv13 = tinv1 ^ tinv2;
    let d3 = tinv12 ^ tinv13;
    let sd1 = d1 ^ d3;
    let sd0 = d0 ^ d2;
    let dl = d0 ^ d1;
    let dh = d2 ^ d3;
    let dd = sd0 ^ sd1;
    let abcd3 = dh & bh;
    let rr2 = d3 & y4;
    let t02 = d2 & y5;
    let abcd4 = dl & bl;
    let r4 = d1 & y6;
    let r5 = d0 & y7;
    let r6 = sd0 & sb0;
    let vr2 = dd & bb;
    let wr2 = sd1 & sb1;
    let abcd5 = dh & ah;
    let r7 = d3 & y0;
    let r8 = d2 & y1;
    let abcd6 = dl & al;
    let r9 = d1 & y2;
    let r10 = d0 & y3;
    let r11 = sd0 & sa0;
    let vr3 = dd & aa;
    let wr3 = sd1 & sa1;

    // Bottom linear layer.
    let ph12 = rr2 ^ abcd3;
    let ph02 = t02 ^ abcd3;
    let pl12 = r4 ^ abcd4;
    let pl02 = r5 ^ abcd4;
    let pr2 = vr2 ^ r6;
    let qr2 = wr2 ^ r6;
    let p0 = ph12 ^ pr2;
    let p1 = ph02 ^ qr2;
    let p2 = pl12 ^ pr2;
    let p3 = pl02 ^ qr2;
    let ph13 = r7 ^ abcd5;
    let ph03 = r8 ^ abcd5;
    let pl13 = r9 ^ abcd6;
    let pl03 = r10 ^ abcd6;
    let pr3 = vr3 ^ r11;
    let qr3 = wr3 ^ r11;
    let p4 = ph13 ^ pr3;
    let s7 = ph03 ^ qr3;
    let p6 = pl13 ^ pr3;
    let p7 = pl03 ^ qr3;
    let s3 = p1 ^ p6;
    let s6 = p2 ^ p6;
    let s0 = p3 ^ p6;
    let x11 = p0 ^ p2;
    let s5 = s0 ^ x11;
    let x13 = p4 ^ p7;
    let x14 = x11 ^ x13;
    let s1 = s3 ^ x14;
    let x16 = p1 ^ s7;
    let s2 = x14 ^ x16;
    let x18 = p0 ^ p4;
    let x19 = s5 ^ x16;
    let s4 = x18 ^ x19;

    [s7, s6, s5, s4, s3, s2, s1, s0]
}

/// The S-box of four bytes (SubWord of the key expansion, FIPS 197, 5.2).
pub fn sub_word(word: [u8; 4]) -> [u8; 4] {
    let mut planes = [0u8; 8];
    for (bit, plane) in planes.iter_mut().enumerate() {
        for (lane, byte) in word.iter().enumerate() {
            *plane |= ((byte >> bit) & 1) << lane;
        }
    }
    let planes = forward(planes);
    let mut out = [AFFINE; 4];
    for (bit, plane) in planes.iter().enumerate() {
        for (lane, byte) in out.iter_mut().enumerate() {
            *byte ^= ((plane >> lane) & 1) << bit;
        }
    }
    out
}

#[cfg(test)]
mod tests;
