use super::*;
use crate::cobblestone::HEADER;

/// The key of the message with this header; `None` if the commitment does not match this key and context.
fn verify(key: &FileKey, context: &[u8], header: &[u8]) -> Option<MessageKey> {
    MessageKey::check(key, context, header, |_| {}).ok()
}

#[test]
fn nonces_are_the_base_xor_the_number() {
    let base_nonce = Zeroizing::new([0xff; 12]);
    let key = MessageKey { key: AeadKey::new(Aead::Gcm, &[0; 16]).unwrap(), base_nonce };
    assert_eq!(key.nonce(0), [0xff; 12]);
    assert_eq!(key.nonce(1)[11], 0xfe);
    assert_eq!(key.nonce((1 << 38) - 1), [255, 255, 255, 255, 255, 255, 255, 0xc0, 0, 0, 0, 0]);
}

/// Each bit of a chunk number changes one bit of the nonce: the bit at the same position of the big-endian number at the end of the
/// nonce.
#[test]
fn each_bit_of_a_number_is_a_bit_of_the_nonce() {
    let base_nonce = Zeroizing::new(std::array::from_fn(|i| 17 * i as u8));
    let key = MessageKey { key: AeadKey::new(Aead::Gcm, &[0; 16]).unwrap(), base_nonce: base_nonce.clone() };
    for bit in 0..64 {
        let mut expected = *base_nonce;
        expected[11 - bit / 8] ^= 1 << (bit % 8);
        assert_eq!(key.nonce(1 << bit), expected, "bit {bit}");
    }
}

#[test]
fn the_commitment_binds_key_context_and_suite() {
    let key = FileKey::from_bytes(&[7; 32]).unwrap();
    let (header, _) = MessageKey::create(&key, b"context").unwrap();
    assert!(verify(&key, b"context", &header).is_some());
    assert!(verify(&key, b"contexT", &header).is_none());
    assert!(verify(&key, b"", &header).is_none());
    for other in [FileKey::from_bytes(&[8; 32]).unwrap(), FileKey::from_bytes(&[7; 16]).unwrap()] {
        assert!(verify(&other, b"context", &header).is_none());
    }
    for at in 0..HEADER {
        let mut changed = header.clone();
        changed[at] ^= 1;
        assert!(verify(&key, b"context", &changed).is_none());
    }
    assert_ne!(MessageKey::create(&key, b"context").unwrap().0, header, "salts repeat");
}

#[test]
fn long_contexts_work() {
    let key = FileKey::from_bytes(&[7; 32]).unwrap();
    let context = vec![1; 70_000];
    let (header, _) = MessageKey::create(&key, &context).unwrap();
    assert!(verify(&key, &context, &header).is_some());
}
