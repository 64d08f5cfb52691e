
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
