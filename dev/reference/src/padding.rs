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
mod tests {
    use super::*;

    #[test]
    fn every_length() {
        for len in 0..=64 {
            let data = vec![0xa5; len];
            let padded = pkcs7_pad(&data);
            assert!(padded.len().is_multiple_of(16) && padded.len() > len && padded.len() <= len + 16);
            assert_eq!(usize::from(*padded.last().unwrap()), padded.len() - len);
            assert_eq!(pkcs7_unpad(&padded), Some(data));
        }
    }

    #[test]
    fn malformed() {
        assert_eq!(pkcs7_unpad(&[]), None);
        assert_eq!(pkcs7_unpad(&[1; 15]), None, "not whole blocks");
        assert_eq!(pkcs7_unpad(&[0; 16]), None, "n = 0");
        assert_eq!(pkcs7_unpad(&[17; 32]), None, "n = 17");
        let mut block = [3; 16];
        block[13] = 4;
        assert_eq!(pkcs7_unpad(&block), None, "one of the three is wrong");
    }
}
