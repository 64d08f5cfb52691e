//! CMAC: SP 800-38B.

use crate::{Aes, Block, cbc_mac, xor};

/// The 16-byte tag of a message of any length (SP 800-38B, section 6.2). A shorter tag consists of its first bytes.
pub fn cmac(aes: &Aes, data: &[u8]) -> Block {
    let (k1, k2) = subkeys(aes);
    // M_1 to M_(n-1) are whole blocks; M_n* has 1 to 16 bytes, or none if the message is empty (steps 2 and
    // 3).
    let whole = data.len().saturating_sub(1) / 16 * 16;
    let (before, last) = data.split_at(whole);
    let mut m_n = [0; 16];
    m_n[..last.len()].copy_from_slice(last);
    if last.len() == 16 {
        m_n = xor(m_n, k1);
    } else {
        m_n[last.len()] = 0x80;
        m_n = xor(m_n, k2);
    }
    cbc_mac::update(aes, cbc_mac::update(aes, [0; 16], before), &m_n)
}

/// The subkeys K1 and K2 (SP 800-38B, section 6.1).
fn subkeys(aes: &Aes) -> (Block, Block) {
    let l = aes.encrypt([0; 16]);
    let k1 = double(l);
    (k1, double(k1))
}

/// Shifts left by one and adds R_128 = 0^120 10000111 if the first bit was set (SP 800-38B, section 6.1, steps 2 and
/// 3).
pub(crate) fn double(block: Block) -> Block {
    let b = u128::from_be_bytes(block);
    let msb = b >> 127 == 1;
    (b << 1 ^ if msb { 0x87 } else { 0 }).to_be_bytes()
}
