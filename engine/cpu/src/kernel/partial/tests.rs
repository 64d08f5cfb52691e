
use super::*;

#[test]
fn parts_of_all_lengths() {
    let source: [u8; 64] = std::array::from_fn(|i| i as u8 + 1);
    for len in 0..=16 {
        let expected = (0..len).fold(0, |number, i| number | u128::from(source[i]) << (8 * i));
        // SAFETY: the array has at least 16 bytes.
        assert_eq!(unsafe { load(source.as_ptr(), len) }, expected, "{len} bytes");
        let mut place = [0xa5; 18];
        // SAFETY: the place has 17 bytes after its first.
        unsafe { store(u128::from_le_bytes([7; 16]), place.as_mut_ptr().add(1), len) };
        assert!(place[1..=len].iter().all(|&byte| byte == 7), "{len} bytes");
        assert!(place[0] == 0xa5 && place[len + 1..].iter().all(|&byte| byte == 0xa5), "{len} bytes");
    }
    for len in 0..=63 {
        let mut place = [0; 64];
        // SAFETY: both arrays have 64 bytes.
        unsafe { copy(source.as_ptr(), place.as_mut_ptr(), len) };
        assert!(place[..len] == source[..len] && place[len..].iter().all(|&byte| byte == 0), "{len} bytes");
    }
}
