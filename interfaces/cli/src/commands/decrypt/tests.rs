
use super::*;

#[test]
fn damaged_magic_is_recognised() {
    for at in 0..MAGIC.len() {
        let mut damaged = *MAGIC;
        damaged[at] ^= 0x80;
        assert!(resembles_magic(&damaged));
        assert_eq!(resembles_magic(&MAGIC[..at]), at > 0);
    }
    assert!(!resembles_magic(&[0x55; 17]));
    assert!(!resembles_magic(b""));
}
