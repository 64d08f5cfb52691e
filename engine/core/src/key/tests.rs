use super::*;

#[test]
fn round_keys_are_the_oracles() {
    for len in [16, 24, 32] {
        let bytes: Vec<u8> = (0..len as u8).map(|i| i.wrapping_mul(37) ^ 0x5a).collect();
        let key = Key::new(&bytes).unwrap();
        assert_eq!(key.round_keys().as_blocks(), lockstep_reference::Aes::new(&bytes).round_keys());
    }
}

#[test]
fn inverse_round_keys_are_those_of_the_equivalent_inverse_cipher() {
    // InvMixColumns (FIPS 197, 5.3.3) of the result of a widely published example of MixColumns: db 13 53 45 becomes 8e 4d a1 bc.
    assert_eq!(inverse_mix_column(0xbca1_4d8e).to_le_bytes(), [0xdb, 0x13, 0x53, 0x45]);
    for len in [16, 24, 32] {
        let key = Key::new(&vec![3; len]).unwrap();
        let (keys, inverse) = (key.round_keys().as_blocks(), key.round_keys().inverse());
        let rounds = key.size().rounds();
        assert_eq!(inverse.as_blocks().len(), rounds + 1);
        assert_eq!((inverse.as_blocks()[0], inverse.as_blocks()[rounds]), (keys[rounds], keys[0]));
        for round in 1..rounds {
            assert_eq!(inverse.as_blocks()[round], inverse_mix_columns(&keys[rounds - round]), "{round}");
        }
    }
}

#[test]
fn other_lengths_are_refused() {
    for len in [0, 1, 15, 17, 23, 31, 33, 64] {
        assert_eq!(Key::new(&vec![0; len]).unwrap_err(), Error::KeyLength { got: len });
    }
}

#[test]
fn forms_are_made_once_and_kept_apart() {
    let key = Key::new(&[7; 16]).unwrap();
    assert!(key.already_prepared::<u32>().is_none());
    assert_eq!(*key.prepared(|_| 1u32), 1);
    assert_eq!(*key.prepared(|_| 2u64), 2);
    assert_eq!(*key.prepared(|_| 3u32), 1, "made twice");
    assert_eq!(key.already_prepared::<u64>(), Some(&2));
    assert!(key.clone().already_prepared::<u64>().is_none(), "a clone expands anew");
}

#[test]
fn many_threads_get_one_form() {
    let key = Key::new(&[7; 16]).unwrap();
    let seen: Vec<usize> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|i| {
                let key = &key;
                scope.spawn(move || {
                    key.prepared(|_| i as u8);
                    std::ptr::from_ref(key.prepared(|_| i as usize)) as usize
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn a_key_does_not_print_itself() {
    let key = Key::new(&[0xab; 32]).unwrap();
    assert_eq!(format!("{key:?}"), "Key(256 bits)");
}
