
use super::*;

#[test]
fn agrees_with_the_oracle() {
    for len in 0..16 {
        let data: Vec<u8> = (1..=len).collect();
        assert_eq!(pad(&data).as_slice(), lockstep_reference::padding::pkcs7_pad(&data));
        assert_eq!(unpad(&pad(&data)), Ok(usize::from(len)));
    }
    for fill in 0..=255u8 {
        for wrong in 0..16 {
            let mut block = [fill; 16];
            block[wrong] ^= 1;
            let expected = lockstep_reference::padding::pkcs7_unpad(&block).map(|data| data.len());
            assert_eq!(unpad(&block).ok(), expected, "{block:?}");
        }
        let block = [fill; 16];
        let expected = lockstep_reference::padding::pkcs7_unpad(&block).map(|data| data.len());
        assert_eq!(unpad(&block).ok(), expected, "{block:?}");
    }
}
