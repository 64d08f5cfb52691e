use super::*;

#[test]
fn a_shorter_key_leaves_nothing_of_a_longer_one() {
    for kernel in InlineKernel::all() {
        let mut key = InlineKey::new(kernel, &[7; 32]).unwrap();
        for (len, byte) in [(24, 8), (16, 9), (32, 10), (16, 11)] {
            let mut expected = [0; 32];
            expected[..len].fill(byte);
            assert!(key.set(&expected[..len]));
            assert_eq!(key.bytes(), &expected[..len]);
            assert_eq!(key.0.bytes.as_flattened(), expected, "{}", kernel.name());
            assert_eq!(key.clone().0.bytes.as_flattened(), expected, "{}", kernel.name());
        }
    }
}
