//! Messages in pieces.

use lockstep::Engine;
use lockstep::aead::{Aead, Error, Key, MessageLengths, Sealer};
use lockstep::hazmat::Opener;

const AAD: &[u8] = b"additional data";
const NONCE: &[u8] = &[3; 12];

/// Plaintext whose pieces start and end inside of blocks.
fn plain() -> Vec<u8> {
    (0..1000u32).map(|i| i as u8).collect()
}

fn cases() -> [(Aead, Option<MessageLengths>); 2] {
    let lengths = MessageLengths { aad: AAD.len() as u64, data: 1000, tag: 16 };
    [(Aead::Gcm, None), (Aead::Ccm, Some(lengths))]
}

#[test]
fn the_table_states_which_modes_take_pieces() {
    let engine = Engine::new().unwrap();
    for mode in Aead::ALL {
        let row = mode.row();
        let key = Key::new(mode, &vec![7; row.key_lengths[0]]).unwrap();
        let nonce = vec![1; *row.nonces.ranges[0].start()];
        let lengths = Some(MessageLengths { aad: 0, data: 0, tag: 16 });
        assert_eq!(Sealer::new(&engine, &key, &nonce, lengths).is_ok(), row.streams, "{mode}");
    }
}

#[test]
fn pieces_give_the_result_of_a_single_call() {
    let engine = Engine::new().unwrap();
    for (mode, lengths) in cases() {
        let key = Key::new(mode, &[7; 32]).unwrap();
        let plain = plain();
        let expected = key.seal(&engine, NONCE, &[AAD], &plain).unwrap();
        let (mut sealed, mut tag) = (plain.clone(), [0; 16]);
        let mut sealer = Sealer::new(&engine, &key, NONCE, lengths).unwrap();
        AAD.chunks(4).for_each(|piece| sealer.aad(piece).unwrap());
        sealed.chunks_mut(77).for_each(|piece| sealer.update_in_place(piece).unwrap());
        sealer.finish(&mut tag).unwrap();
        assert_eq!([&sealed[..], &tag].concat(), expected, "{mode}");

        let mut opened = vec![0; 1000];
        let mut opener = Opener::new(&engine, &key, NONCE, lengths).unwrap();
        opener.aad(AAD).unwrap();
        for (input, output) in sealed.chunks(33).zip(opened.chunks_mut(33)) {
            opener.update(input, output).unwrap();
        }
        opener.finish(&tag).unwrap();
        assert_eq!(opened, plain, "{mode}");
    }
}

#[test]
fn wrong_tags_and_calls_out_of_order_are_errors() {
    let engine = Engine::new().unwrap();
    for (mode, lengths) in cases() {
        let key = Key::new(mode, &[7; 16]).unwrap();
        let mut opener = Opener::new(&engine, &key, NONCE, lengths).unwrap();
        opener.aad(AAD).unwrap();
        opener.update_in_place(&mut plain()).unwrap();
        assert!(matches!(opener.aad(AAD), Err(Error::Order { .. })), "{mode}");
        assert_eq!(opener.finish(&[0; 16]), Err(Error::AuthenticationFailed), "{mode}");
    }
}

#[test]
fn modes_that_need_the_whole_message_are_refused() {
    let engine = Engine::new().unwrap();
    for mode in [Aead::Ccm, Aead::Siv, Aead::GcmSiv] {
        let key = Key::new(mode, &[7; 32]).unwrap();
        let refused = Sealer::new(&engine, &key, NONCE, None);
        assert!(matches!(refused.err(), Some(Error::Order { .. })), "{mode}");
    }
}
