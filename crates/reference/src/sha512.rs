//! SHA-512, HMAC and HKDF-Expand, for [`crate::cobblestone`] alone.

/// SHA-512 of `message` (FIPS 180-4, section 6.4).
pub(crate) fn sha512(message: &[u8]) -> [u8; 64] {
    // Padding (section 5.1.2): a bit 1, zeros, and the length in bits as 16 bytes, to whole blocks of 128
    // bytes.
    let mut padded = message.to_vec();
    padded.push(0x80);
    padded.resize((padded.len() + 16).next_multiple_of(128) - 16, 0);
    padded.extend((8 * message.len() as u128).to_be_bytes());

    let mut h = H0;
    for block in padded.as_chunks::<128>().0 {
        compress(&mut h, block);
    }
    let mut digest = [0; 64];
    for (bytes, word) in digest.as_chunks_mut().0.iter_mut().zip(h) {
        *bytes = word.to_be_bytes();
    }
    digest
}

/// HMAC-SHA-512 (FIPS 198-1, section 4).
pub(crate) fn hmac(key: &[u8], text: &[u8]) -> [u8; 64] {
    let mut k0 = [0; 128];
    if key.len() <= 128 {
        k0[..key.len()].copy_from_slice(key);
    } else {
        k0[..64].copy_from_slice(&sha512(key));
    }
    let inner = sha512(&[&k0.map(|b| b ^ 0x36), text].concat());
    sha512(&[&k0.map(|b| b ^ 0x5c), &inner[..]].concat())
}

/// HKDF-Expand with HMAC-SHA-512: the first `len` bytes of T(1) || T(2) || ... (RFC 5869, section 2.3).
pub(crate) fn hkdf_expand(prk: &[u8], info: &[u8], len: usize) -> Vec<u8> {
    let mut okm = Vec::new();
    let mut t = Vec::new();
    for i in 1..=u8::MAX {
        if okm.len() >= len {
            break;
        }
        t = hmac(prk, &[&t[..], info, &[i]].concat()).to_vec();
        okm.extend(&t);
    }
    assert!(okm.len() >= len, "HKDF-Expand gives at most 255 blocks");
    okm.truncate(len);
    okm
}

/// One step of the hash: message schedule and 80 rounds (FIPS 180-4, section 6.4.2).
fn compress(hash: &mut [u64; 8], block: &[u8; 128]) {
    let mut w = [0; 80];
    for (w, bytes) in w.iter_mut().zip(block.as_chunks().0) {
        *w = u64::from_be_bytes(*bytes);
    }
    for t in 16..80 {
        w[t] = small_sigma_1(w[t - 2])
            .wrapping_add(w[t - 7])
            .wrapping_add(small_sigma_0(w[t - 15]))
            .wrapping_add(w[t - 16]);
    }

    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *hash;
    for t in 0..80 {
        let t1 =
            h.wrapping_add(big_sigma_1(e)).wrapping_add(ch(e, f, g)).wrapping_add(K[t]).wrapping_add(w[t]);
        let t2 = big_sigma_0(a).wrapping_add(maj(a, b, c));
        (h, g, f, e) = (g, f, e, d.wrapping_add(t1));
        (d, c, b, a) = (c, b, a, t1.wrapping_add(t2));
    }
    for (sum, word) in hash.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *sum = sum.wrapping_add(word);
    }
}

// The functions of FIPS 180-4, section 4.1.3, equations 4.8 to 4.13.

fn ch(x: u64, y: u64, z: u64) -> u64 {
    (x & y) ^ (!x & z)
}

fn maj(x: u64, y: u64, z: u64) -> u64 {
    (x & y) ^ (x & z) ^ (y & z)
}

fn big_sigma_0(x: u64) -> u64 {
    x.rotate_right(28) ^ x.rotate_right(34) ^ x.rotate_right(39)
}

fn big_sigma_1(x: u64) -> u64 {
    x.rotate_right(14) ^ x.rotate_right(18) ^ x.rotate_right(41)
}

fn small_sigma_0(x: u64) -> u64 {
    x.rotate_right(1) ^ x.rotate_right(8) ^ (x >> 7)
}

fn small_sigma_1(x: u64) -> u64 {
    x.rotate_right(19) ^ x.rotate_right(61) ^ (x >> 6)
}

/// The first 64 bits of the fractional parts of the square roots of the first 8 primes (FIPS 180-4, section
/// 5.3.5).
const H0: [u64; 8] = [
    0x6a09e667f3bcc908,
    0xbb67ae8584caa73b,
    0x3c6ef372fe94f82b,
    0xa54ff53a5f1d36f1,
    0x510e527fade682d1,
    0x9b05688c2b3e6c1f,
    0x1f83d9abfb41bd6b,
    0x5be0cd19137e2179,
];

/// The first 64 bits of the fractional parts of the cube roots of the first 80 primes (FIPS 180-4, section
/// 4.2.3).
const K: [u64; 80] = [
    0x428a2f98d728ae22,
    0x7137449123ef65cd,
    0xb5c0fbcfec4d3b2f,
    0xe9b5dba58189dbbc,
    0x3956c25bf348b538,
    0x59f111f1b605d019,
    0x923f82a4af194f9b,
    0xab1c5ed5da6d8118,
    0xd807aa98a3030242,
    0x12835b0145706fbe,
    0x243185be4ee4b28c,
    0x550c7dc3d5ffb4e2,
    0x72be5d74f27b896f,
    0x80deb1fe3b1696b1,
    0x9bdc06a725c71235,
    0xc19bf174cf692694,
    0xe49b69c19ef14ad2,
    0xefbe4786384f25e3,
    0x0fc19dc68b8cd5b5,
    0x240ca1cc77ac9c65,
    0x2de92c6f592b0275,
    0x4a7484aa6ea6e483,
    0x5cb0a9dcbd41fbd4,
    0x76f988da831153b5,
    0x983e5152ee66dfab,
    0xa831c66d2db43210,
    0xb00327c898fb213f,
    0xbf597fc7beef0ee4,
    0xc6e00bf33da88fc2,
    0xd5a79147930aa725,
    0x06ca6351e003826f,
    0x142929670a0e6e70,
    0x27b70a8546d22ffc,
    0x2e1b21385c26c926,
    0x4d2c6dfc5ac42aed,
    0x53380d139d95b3df,
    0x650a73548baf63de,
    0x766a0abb3c77b2a8,
    0x81c2c92e47edaee6,
    0x92722c851482353b,
    0xa2bfe8a14cf10364,
    0xa81a664bbc423001,
    0xc24b8b70d0f89791,
    0xc76c51a30654be30,
    0xd192e819d6ef5218,
    0xd69906245565a910,
    0xf40e35855771202a,
    0x106aa07032bbd1b8,
    0x19a4c116b8d2d0c8,
    0x1e376c085141ab53,
    0x2748774cdf8eeb99,
    0x34b0bcb5e19b48a8,
    0x391c0cb3c5c95a63,
    0x4ed8aa4ae3418acb,
    0x5b9cca4f7763e373,
    0x682e6ff3d6b2b8a3,
    0x748f82ee5defb2fc,
    0x78a5636f43172f60,
    0x84c87814a1f0ab72,
    0x8cc702081a6439ec,
    0x90befffa23631e28,
    0xa4506cebde82bde9,
    0xbef9a3f7b2c67915,
    0xc67178f2e372532b,
    0xca273eceea26619c,
    0xd186b8c721c0c207,
    0xeada7dd6cde0eb1e,
    0xf57d4f7fee6ed178,
    0x06f067aa72176fba,
    0x0a637dc5a2c898a6,
    0x113f9804bef90dae,
    0x1b710b35131c471b,
    0x28db77f523047d84,
    0x32caab7b40c72493,
    0x3c9ebe0a15c9bebc,
    0x431d67c49c100d4c,
    0x4cc5d4becb3e42b6,
    0x597f299cfc657e2a,
    0x5fcb6fab3ad6faec,
    0x6c44198c4a475817,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// The examples that NIST publishes for FIPS 180: one block, and two.
    #[test]
    fn fips_180_examples() {
        let abc = "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
              2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f";
        assert_eq!(hex(&sha512(b"abc")), abc);
        let two_blocks = b"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn\
                           hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu";
        let expected = "8e959b75dae313da8cf4f72814fc143f8f7779c6eb9f7fa17299aeadb6889018\
              501d289e4900f7e4331b99dec4b5433ac7d329eeb6dd26545e96e55b874be909";
        assert_eq!(hex(&sha512(two_blocks)), expected);
    }

    /// RFC 4231, test cases 1 and 6: a short key, and one longer than a block.
    #[test]
    fn rfc_4231_hmac() {
        let expected = "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cde\
              daa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854";
        assert_eq!(hex(&hmac(&[0x0b; 20], b"Hi There")), expected);
        let expected = "80b24263c7c1a3ebb71493c1dd7be8b49b46d1f41b4aeec1121b013783f8f352\
              6b56d037e05f2598bd0fd2215d6a1e5295e64f73f63f0aec8b915a985d786598";
        let text = b"Test Using Larger Than Block-Size Key - Hash Key First";
        assert_eq!(hex(&hmac(&[0xaa; 131], text)), expected);
    }

    /// Two blocks of output: the second is chained to the first.
    #[test]
    fn hkdf_chains() {
        let okm = hkdf_expand(b"key", b"info", 100);
        assert_eq!(okm[..64], hmac(b"key", b"info\x01"));
        assert_eq!(okm[64..], hmac(b"key", &[&okm[..64], b"info\x02"].concat())[..36]);
    }
}
