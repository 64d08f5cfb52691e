//! PKCS #7 padding to blocks of 16: RFC 5652, section 6.3.

/// `data` followed by n bytes of value n, where n is the number from 1 to 16 that completes the last block (RFC 5652,
/// section 6.3).
pub fn pkcs7_pad(data: &[u8]) -> Vec<u8> {
    let n = 16 - data.len() % 16;
    let mut padded = data.to_vec();
    padded.resize(data.len() + n, n as u8);
    padded
}

/// Removes the padding; `None` if `data` is not whole blocks that end in n bytes of value n, 1 to 16 (RFC 5652, section
/// 6.3).
pub fn pkcs7_unpad(data: &[u8]) -> Option<Vec<u8>> {
    let n = *data.last()?;
    if !data.len().is_multiple_of(16) || !(1..=16).contains(&n) {
        return None;
    }
    let (unpadded, padding) = data.split_at(data.len() - usize::from(n));
    padding.iter().all(|b| *b == n).then(|| unpadded.to_vec())
}

#[cfg(test)]
mod tests;
