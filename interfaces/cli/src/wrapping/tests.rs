
use super::*;
use age::x25519;

fn by(identities: Vec<x25519::Identity>) -> Unlock {
    let identities = identities.into_iter().map(|identity| Box::new(identity) as _).collect();
    Unlock::Identities { identities, answers: Answers::new(None, 20, true) }
}

fn open(envelope: &Envelope, unlock: &Unlock) -> Result<FileKey> {
    unwrap(envelope, unlock, &|| false)
}

fn key() -> FileKey {
    FileKey::from_bytes(&[7; 32]).unwrap()
}

#[test]
fn round_trip() {
    let identity = x25519::Identity::generate();
    let envelope = wrap(&key(), &[Box::new(identity.to_public())]).unwrap();
    let both = by(vec![x25519::Identity::generate(), identity]);
    assert_eq!(open(&envelope, &both).unwrap().as_bytes(), key().as_bytes());
    let error = open(&envelope, &by(vec![x25519::Identity::generate()])).unwrap_err();
    assert_eq!(error.exit_code(), 1);
    let header = header(&envelope).unwrap();
    assert_eq!(header.kinds().next(), Some("X25519"));
    assert!(!header.is_passphrase());
}

#[test]
fn any_change_of_the_envelope_is_detected() {
    let identity = x25519::Identity::generate();
    let envelope = wrap(&key(), &[Box::new(identity.to_public())]).unwrap();
    let unlock = by(vec![identity]);
    for at in 0..envelope.payload().len() {
        let mut payload = envelope.payload().to_vec();
        payload[at] ^= 1;
        let error = open(&Envelope::new(&payload).unwrap(), &unlock).unwrap_err();
        assert_eq!(error.exit_code(), 1, "{at}: {error}");
        let error = open(&Envelope::new(&payload[..at]).unwrap(), &unlock).unwrap_err();
        assert_eq!(error.exit_code(), 1, "{at}: {error}");
    }
}

#[test]
fn keys_of_another_length_are_refused() {
    let identity = x25519::Identity::generate();
    for len in [0, 16, 31, 33, 100] {
        let payload = age::encrypt(&identity.to_public(), &vec![1; len]).unwrap();
        let envelope = Envelope::new(&payload).unwrap();
        assert!(open(&envelope, &by(vec![identity.clone()])).is_err(), "{len}");
    }
}
