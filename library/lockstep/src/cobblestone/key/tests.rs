
use super::*;

#[test]
fn keys_have_two_lengths_and_are_not_printed() {
    for len in [0, 15, 17, 24, 31, 33] {
        assert!(matches!(FileKey::from_bytes(&vec![1; len]), Err(Error::KeyLength { got }) if got == len));
    }
    assert_eq!(format!("{:?}", FileKey::from_bytes(&[0xab; 32]).unwrap()), "FileKey(Cobblestone-256)");
    let (one, two) = (FileKey::generate().unwrap(), FileKey::generate().unwrap());
    assert_eq!(one.as_bytes().len(), 32);
    assert_ne!(one.as_bytes(), two.as_bytes());
    assert_eq!(FileKey::generate_for(Suite::Cobblestone128).unwrap().as_bytes().len(), 16);
}
