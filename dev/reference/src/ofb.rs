//! Output feedback: SP 800-38A, section 6.4.

use crate::{Aes, Block};

/// OFB encryption of data of any length; decryption is the same operation. O_j = CIPH(O_(j-1)), with O_0 the IV, is added to
/// the data (SP 800-38A, section 6.4).
pub fn apply(aes: &Aes, iv: &Block, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len());
    let mut o = *iv;
    for chunk in data.chunks(16) {
        o = aes.encrypt(o);
        out.extend(chunk.iter().zip(o).map(|(d, o)| d ^ o));
    }
    out
}
