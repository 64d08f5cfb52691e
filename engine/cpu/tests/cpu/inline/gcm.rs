//! Incremental GCM.

use std::sync::Barrier;

use lockstep_core::work::Tag;
use lockstep_reference::{gcm, ghash};

use super::*;

/// Calls `test` for each kernel and each key length.
fn each_gcm(mut test: impl FnMut(&Aes, InlineGcm, &str)) {
    for kernel in InlineKernel::all() {
        for len in KEY_LENGTHS {
            let key = bytes(len, len);
            let name = format!("{} AES-{}", kernel.name(), 8 * len);
            test(&Aes::new(&key), InlineGcm::new(kernel, &key).unwrap(), &name);
        }
    }
}

/// Cuts `len` bytes into pieces, some of them empty.
pub(super) fn pieces(seed: usize, len: usize) -> Vec<usize> {
    let mut rest = len;
    let mut pieces = Vec::new();
    for word in bytes(seed, 8 * (len + 8)).chunks(8) {
        // A random maximum makes short pieces as frequent as long pieces.
        let most = [3, 17, 70, 600, usize::MAX][usize::from(word[0]) % 5].min(rest + 1);
        let piece = u32::from_le_bytes(word[4..].try_into().unwrap()) as usize % most;
        pieces.push(piece);
        rest -= piece;
        if rest == 0 {
            return pieces;
        }
    }
    pieces.push(rest);
    pieces
}

fn feed_aad(gcm: &mut InlineGcm, seed: usize, mut aad: &[u8]) {
    for piece in pieces(seed, aad.len()) {
        let (head, rest) = aad.split_at(piece);
        assert!(gcm.aad(head));
        aad = rest;
    }
}

fn feed(gcm: &mut InlineGcm, seed: usize, data: &[u8], apart: bool) -> Vec<u8> {
    let mut out = if apart { vec![0; data.len()] } else { data.to_vec() };
    let mut at = 0;
    for piece in pieces(seed, data.len()) {
        let range = at..at + piece;
        let span = if apart {
            Span::copy(&data[range.clone()], &mut out[range])
        } else {
            Span::in_place(&mut out[range])
        };
        assert!(gcm.update(span));
        at += piece;
    }
    out
}

#[test]
fn any_split() {
    let lengths = (0..=200).step_by(3).chain([16, 32, 255, 256, 257, 768, 1040, 5000, 40_001]);
    let lengths: Vec<usize> = lengths.collect();
    each_gcm(|aes, mut gcm, what| {
        for (number, &len) in lengths.iter().enumerate() {
            let iv = bytes(number, [12, 12, 1, 8, 16, 60, 12, 17, 128][number % 9]);
            let aad = bytes(number + 1, [0, 13, 16, 20, 1, 300][number % 6]);
            let plaintext = bytes(number + 2, len);
            let (ciphertext, tag) = gcm::seal(aes, &iv, &aad, &plaintext);
            for seed in 0..4 {
                let apart = seed % 2 == 0;
                assert!(gcm.start(true, &iv));
                feed_aad(&mut gcm, seed, &aad);
                assert!(feed(&mut gcm, seed + len, &plaintext, apart) == ciphertext, "{what}: {len} bytes");
                assert_eq!(gcm.finish_seal(), Some(tag), "{what}: {len} bytes");

                assert!(gcm.start(false, &iv));
                feed_aad(&mut gcm, seed + 9, &aad);
                assert!(
                    feed(&mut gcm, seed + 2 * len, &ciphertext, !apart) == plaintext,
                    "{what}: {len} bytes"
                );
                assert!(gcm.finish_open(&tag[..1 + (number + seed) % 16]), "{what}: {len} bytes");
            }
        }
    });
}

#[test]
fn whole_messages() {
    each_gcm(|aes, mut gcm, what| {
        for (number, len) in (0..=80).chain([255, 256, 257, 768, 1040, 5000]).enumerate() {
            let iv = bytes(number, [12, 12, 1, 60][number % 4]);
            let aad = bytes(number + 1, [0, 13, 16, 100, 300][number % 5]);
            let plaintext = bytes(number + 2, len);
            let (ciphertext, tag) = gcm::seal(aes, &iv, &aad, &plaintext);
            let cut = &tag[..1 + number % 16];
            // An unfinished message in pieces does not affect a later message.
            assert!(gcm.start(true, b"other") && gcm.aad(b"other"));
            let (mut sealed, mut made) = (plaintext.clone(), vec![0; cut.len()]);
            let done = gcm.message(&iv, &aad, Span::in_place(&mut sealed), &mut Tag::Write(&mut made));
            assert_eq!((done, &made[..]), (Some(true), cut), "{what}: {len} bytes");
            assert!(sealed == ciphertext, "{what}: {len} bytes");
            assert!(!gcm.update(Span::in_place(&mut [0])), "{what}: the message has ended");
            let mut opened = vec![0; len];
            let data = Span::copy(&ciphertext, &mut opened);
            assert_eq!(
                gcm.message(&iv, &aad, data, &mut Tag::Expect(cut)),
                Some(true),
                "{what}: {len} bytes"
            );
            assert!(opened == plaintext, "{what}: {len} bytes");
            let mut wrong = cut.to_vec();
            wrong[number % cut.len()] ^= 0x40;
            let data = Span::in_place(&mut sealed);
            assert_eq!(
                gcm.message(&iv, &aad, data, &mut Tag::Expect(&wrong)),
                Some(false),
                "{what}: {len} bytes"
            );
        }
        for (iv, tag) in [(&[][..], &[0; 16][..]), (&[0; 12], &[]), (&[0; 12], &[0; 17])] {
            let mut data = *b"unchanged";
            assert_eq!(
                gcm.message(iv, &[], Span::in_place(&mut data), &mut Tag::Expect(tag)),
                None,
                "{what}"
            );
            assert_eq!(&data, b"unchanged");
        }
    });
}

#[test]
fn tags() {
    each_gcm(|aes, mut gcm, what| {
        let iv = bytes(1, 12);
        let (ciphertext, tag) = gcm::seal(aes, &iv, b"aad", &bytes(2, 50));
        let mut open = |tag: &[u8]| {
            assert!(gcm.start(false, &iv) && gcm.aad(b"aad"));
            feed(&mut gcm, 0, &ciphertext, false);
            gcm.finish_open(tag)
        };
        for len in 1..=16 {
            assert!(open(&tag[..len]), "{what}: tag of {len} bytes");
            for bit in 0..8 * len {
                let mut wrong = tag;
                wrong[bit / 8] ^= 1 << (bit % 8);
                assert!(!open(&wrong[..len]), "{what}: tag of {len} bytes, bit {bit} wrong");
            }
        }
        assert!(!open(&[]), "{what}");
        assert!(!open(&[&tag[..], &[0]].concat()), "{what}");
        assert!(open(&tag), "{what}");
    });
}

#[test]
fn empty_messages_with_and_without_aad() {
    each_gcm(|aes, mut gcm, what| {
        for aad in [&[][..], &[1], &[2; 16], &[3; 77]] {
            let iv = bytes(aad.len(), 12);
            assert!(gcm.start(true, &iv) && gcm.aad(aad));
            assert_eq!(gcm.finish_seal(), Some(gcm::gmac(aes, &iv, aad)), "{what}");
        }
    });
}

#[test]
fn duplicates_are_independent() {
    each_gcm(|aes, mut gcm, what| {
        let (iv, aad) = (bytes(1, 20), bytes(2, 21));
        let (one, other) = (bytes(3, 300), bytes(4, 300));
        for cut in [0, 1, 16, 37, 299] {
            let shared = [&one[..cut], &other[cut..]].concat();
            assert!(gcm.start(true, &iv) && gcm.aad(&aad[..5]));
            let mut early = gcm.duplicate().unwrap();
            assert!(gcm.aad(&aad[5..]));
            let mut head = one[..cut].to_vec();
            assert!(gcm.update(Span::in_place(&mut head)));
            let mut copy = gcm.duplicate().unwrap();
            let first = [head.clone(), feed(&mut gcm, 1, &one[cut..], false)].concat();
            let second = [head, feed(&mut copy, 2, &other[cut..], false)].concat();
            assert_eq!((first, gcm.finish_seal().unwrap()), gcm::seal(aes, &iv, &aad, &one), "{what}");
            assert_eq!((second, copy.finish_seal().unwrap()), gcm::seal(aes, &iv, &aad, &shared), "{what}");
            drop(copy);
            assert_eq!(early.finish_seal().unwrap(), gcm::gmac(aes, &iv, &aad[..5]), "{what}");
        }
        // A context can also be copied when no message is in progress.
        let mut idle = gcm.duplicate().unwrap();
        assert_eq!(idle.finish_seal(), None);
        assert!(idle.start(true, &iv) && idle.aad(&aad));
        assert_eq!(idle.finish_seal(), Some(gcm::gmac(aes, &iv, &aad)), "{what}");
    });
}

/// Encrypts messages under the key of `aes`, and compares the results with the reference implementation.
fn check_message(gcm: &mut InlineGcm, aes: &Aes, what: &str) {
    for len in [5, 100, 1024, 5000] {
        let (iv, plaintext) = (bytes(len, 12), bytes(len + 1, len));
        assert!(gcm.start(true, &iv) && gcm.aad(b"aad"));
        let ciphertext = feed(gcm, len, &plaintext, false);
        let expected = gcm::seal(aes, &iv, b"aad", &plaintext);
        assert_eq!((ciphertext, gcm.finish_seal().unwrap()), expected, "{what}: {len} bytes");
    }
}

#[test]
fn a_new_key_does_not_change_copies() {
    each_gcm(|aes, mut gcm, what| {
        for len in KEY_LENGTHS {
            let key = bytes(len + 50, len);
            let other = Aes::new(&key);
            let mut copy = gcm.duplicate().unwrap();
            let mut second = copy.duplicate().unwrap();
            // A new key for the copy does not affect the other contexts.
            assert!(!copy.set_key(&key[1..]) && copy.set_key(&key));
            assert!(!copy.update(Span::in_place(&mut [0])), "{what}: a new key has no message");
            check_message(&mut copy, &other, what);
            check_message(&mut gcm, aes, what);
            check_message(&mut second, aes, what);
            // A new key for the original does not affect its copies.
            let mut original = copy.duplicate().unwrap();
            assert!(original.set_key(&bytes(len + 60, 16)));
            let mut copies = [original.duplicate().unwrap(), original.duplicate().unwrap()];
            assert!(original.set_key(&key));
            check_message(&mut original, &other, what);
            check_message(&mut original.duplicate().unwrap(), &other, what);
            for copy in &mut copies {
                check_message(copy, &Aes::new(&bytes(len + 60, 16)), what);
            }
        }
    });
}

#[test]
fn copies_outlive_the_original_and_the_original_its_copies() {
    for kernel in InlineKernel::all() {
        let (key, what) = (bytes(1, 32), kernel.name());
        let aes = Aes::new(&key);
        for order in 0..3 {
            let original = InlineGcm::new(kernel, &key).unwrap();
            let copy = original.duplicate().unwrap();
            let second = copy.duplicate().unwrap();
            let mut contexts = vec![original, copy, second];
            contexts.rotate_left(order);
            while !contexts.is_empty() {
                contexts.iter_mut().for_each(|gcm| check_message(gcm, &aes, what));
                contexts.pop();
            }
        }
    }
}

/// The first copy computes the powers of the shared key. Here, several threads make the first copy at the same time.
#[test]
fn threads_copy_a_context_at_the_same_time() {
    for kernel in InlineKernel::all() {
        let key = bytes(2, 16);
        for _ in 0..20 {
            let gcm = InlineGcm::new(kernel, &key).unwrap();
            let start = Barrier::new(4);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        start.wait();
                        let mut copy = gcm.duplicate().unwrap();
                        check_message(&mut copy, &Aes::new(&key), kernel.name());
                    });
                }
            });
        }
    }
}

#[test]
fn keys_are_replaced() {
    each_gcm(|_, mut gcm, what| {
        for round in 0..3 {
            for len in KEY_LENGTHS.into_iter().chain(KEY_LENGTHS) {
                let (key, iv) = (bytes(round + 40, len), bytes(round, [12, 60, 8][round]));
                assert!(gcm.set_key(&key));
                assert!(!gcm.update(Span::in_place(&mut [0])), "{what}: a new key has no message");
                assert!(gcm.start(true, &iv));
                assert!(!gcm.set_key(&key[1..]), "{what}");
                let found = feed(&mut gcm, 1, &[7; 100], false);
                let expected = gcm::seal(&Aes::new(&key), &iv, &[], &[7; 100]);
                assert_eq!((found, gcm.finish_seal().unwrap()), expected, "{what}");
                // The next call of `set_key` interrupts this message.
                assert!(gcm.start(round == 0, &iv) && gcm.update(Span::in_place(&mut [1; 5])));
            }
        }
    });
}

#[test]
fn calls_out_of_order_are_refused() {
    each_gcm(|aes, mut gcm, what| {
        let iv = bytes(1, 12);
        let refuses_all = |gcm: &mut InlineGcm| {
            !gcm.aad(b"a")
                && !gcm.update(Span::in_place(&mut [0]))
                && gcm.finish_seal().is_none()
                && !gcm.finish_open(&[0; 16])
        };
        assert!(refuses_all(&mut gcm), "{what}: before the first message");
        assert!(!gcm.start(true, &[]), "{what}: no IV");
        assert!(refuses_all(&mut gcm), "{what}: without IV");

        assert!(gcm.start(true, &iv) && gcm.aad(b"aad") && gcm.update(Span::in_place(&mut [])));
        assert!(gcm.aad(b" and more"), "{what}: no data yet");
        let mut data = [5; 3];
        assert!(gcm.update(Span::in_place(&mut data)));
        assert!(!gcm.aad(b"late"), "{what}: AAD after data");
        assert!(!gcm.finish_open(&[0; 16]), "{what}: the other direction");
        let expected = gcm::seal(aes, &iv, b"aad and more", &[5; 3]);
        assert_eq!((data.to_vec(), gcm.finish_seal().unwrap()), expected, "{what}: refusals change nothing");
        assert!(refuses_all(&mut gcm), "{what}: after the tag");

        assert!(gcm.start(false, &iv));
        let mut place = [0x5a; 16];
        assert!(!gcm.finish_seal_into(&mut place) && place == [0x5a; 16], "{what}: the other direction");
        assert!(gcm.finish_open(&gcm::gmac(aes, &iv, &[])), "{what}");
        assert!(refuses_all(&mut gcm), "{what}: after the verdict");
    });
}

/// An IV of 16 bytes for which J0 is `first`: the inverse of SP 800-38D, 7.1, step 2.
fn iv_of_first_counter(aes: &Aes, first: Block) -> Block {
    let h = aes.encrypt([0; 16]);
    // H to the power of 2^128 - 2, which is 1/H.
    let inverse = (1..128).fold((h, None), |(power, product), _| {
        let power = ghash::mul(power, power);
        (power, Some(product.map_or(power, |product| ghash::mul(product, power))))
    });
    let inverse = inverse.1.unwrap();
    let lengths = 8 * 16u128;
    let sum = u128::from_be_bytes(ghash::mul(first, inverse)) ^ lengths;
    ghash::mul(sum.to_be_bytes(), inverse)
}

/// The last 32 bits of the counter overflow within a message, without a carry to the other bits (SP 800-38D, 6.2).
#[test]
fn counters_overflow() {
    each_gcm(|aes, mut gcm, what| {
        for (number, before) in [0, 1, 2, 3, 9, 30, 63, 64, 100, 200].into_iter().enumerate() {
            let first =
                (0xFEDC_BA98_7654_3210_0123_4567u128 << 32 | u128::from(u32::MAX - before)).to_be_bytes();
            let iv = iv_of_first_counter(aes, first);
            let lengths = (8 * 16u128).to_be_bytes();
            assert_eq!(ghash::ghash(&aes.encrypt([0; 16]), &[&iv[..], &lengths].concat()), first);
            for len in [70, 1000, 5000] {
                let plaintext = bytes(number, len);
                let (ciphertext, tag) = gcm::seal(aes, &iv, &[7], &plaintext);
                let mut copy = gcm.duplicate().unwrap();
                for gcm in [&mut gcm, &mut copy] {
                    for pieces in [vec![len], vec![16, len - 16], vec![33, len - 33]] {
                        let mut data = plaintext.clone();
                        assert!(gcm.start(true, &iv) && gcm.aad(&[7]));
                        let mut rest = &mut data[..];
                        for piece in pieces {
                            assert!(gcm.update(Span::in_place(rest.split_off_mut(..piece).unwrap())));
                        }
                        assert_eq!(
                            (data, gcm.finish_seal()),
                            (ciphertext.clone(), Some(tag)),
                            "{what}, {before}"
                        );
                    }
                    let mut data = ciphertext.clone();
                    assert!(gcm.start(false, &iv) && gcm.aad(&[7]) && gcm.update(Span::in_place(&mut data)));
                    assert!(gcm.finish_open(&tag) && data == plaintext, "{what}, {before}");
                }
            }
        }
    });
}

/// After a key is set, powers of H are computed only when messages need them. Messages of any length must work.
#[test]
fn another_key_before_each_message() {
    let lengths = (0..=34).chain([48, 63, 64, 127, 128, 129]).map(|blocks| 16 * blocks).chain([5, 257, 1030]);
    let lengths: Vec<usize> = lengths.collect();
    each_gcm(|_, mut gcm, what| {
        for (number, &len) in lengths.iter().enumerate() {
            let key = bytes(number + 7, KEY_LENGTHS[number % 3]);
            let aes = Aes::new(&key);
            assert!(gcm.set_key(&key));
            let (iv, aad) = (bytes(number, 12), bytes(number, [0, 16, 200][number % 3]));
            // The second message is longer or shorter than the first. The third message is processed by a copy of the
            // context.
            for (turn, len) in [len, lengths[lengths.len() - 1 - number], len + 512].into_iter().enumerate() {
                let plaintext = bytes(number + turn, len);
                let (ciphertext, tag) = gcm::seal(&aes, &iv, &aad, &plaintext);
                // A copy has all powers, and the original also has them from then on.
                let mut copy = (turn == 2).then(|| gcm.duplicate().unwrap());
                let gcm = copy.as_mut().unwrap_or(&mut gcm);
                let mut data = plaintext.clone();
                assert!(gcm.start(true, &iv) && gcm.aad(&aad) && gcm.update(Span::in_place(&mut data)));
                assert!(data == ciphertext, "{what}: {len} bytes");
                assert_eq!(gcm.finish_seal(), Some(tag), "{what}: {len} bytes");
                assert!(gcm.start(false, &iv) && gcm.aad(&aad) && gcm.update(Span::in_place(&mut data)));
                assert!(data == plaintext && gcm.finish_open(&tag), "{what}: {len} bytes");
            }
        }
    });
}

/// Blocks of the additional data and of short updates wait to be hashed. Each number of them meets each length of an update.
#[test]
fn short_updates_after_waiting_blocks() {
    let lengths = [0, 1, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 79, 80];
    for kernel in InlineKernel::all() {
        let mut gcm = InlineGcm::new(kernel, &[0; 16]).unwrap();
        for (turn, aad_len) in [0, 1, 16, 17, 32, 33, 48, 49, 64, 96, 97, 112].into_iter().enumerate() {
            let key = bytes(turn, KEY_LENGTHS[turn % 3]);
            let (aes, iv, aad) =
                (Aes::new(&key), bytes(turn, [12, 12, 16][turn % 3]), bytes(turn + 1, aad_len));
            for (first, second) in lengths.iter().flat_map(|first| lengths.map(|second| (*first, second))) {
                let plaintext = bytes(first, first + second);
                let (ciphertext, tag) = gcm::seal(&aes, &iv, &aad, &plaintext);
                for encrypts in [true, false] {
                    let (text, result) =
                        if encrypts { (&plaintext, &ciphertext) } else { (&ciphertext, &plaintext) };
                    // The key is new for encryption. Decryption finds the powers that encryption has computed.
                    assert!(!encrypts || gcm.set_key(&key));
                    assert!(gcm.start(encrypts, &iv) && gcm.aad(&aad));
                    let mut out = text.clone();
                    let (head, rest) = out.split_at_mut(first);
                    assert!(gcm.update(Span::in_place(head)));
                    let mut copy = (first % 3 == 0).then(|| gcm.duplicate().unwrap());
                    let gcm = copy.as_mut().unwrap_or(&mut gcm);
                    assert!(gcm.update(Span::copy(&text[first..], rest)));
                    let what = format!("{}: {aad_len} + {first} + {second} bytes", kernel.name());
                    assert!(out == *result, "{what}");
                    let is_right =
                        if encrypts { gcm.finish_seal() == Some(tag) } else { gcm.finish_open(&tag) };
                    assert!(is_right, "{what}");
                }
            }
        }
    }
}

/// The CTR of the caller processes a part of the blocks, or all, between updates without it.
#[test]
fn ctr_of_the_caller() {
    each_key(|kernel, aes, ctr, what| {
        let mut gcm = InlineGcm::new(kernel, ctr.bytes()).unwrap();
        for left in [0, 32] {
            for (first, second, third) in
                [(0, 64, 16), (16, 100, 5), (5, 27, 70), (48, 1, 300), (64, 512, 64)]
            {
                let (iv, plaintext) = (bytes(first, 12), bytes(second, first + second + third));
                let (ciphertext, tag) = gcm::seal(aes, &iv, b"", &plaintext);
                let mut out = plaintext.clone();
                let (head, rest) = out.split_at_mut(first);
                let (middle, tail) = rest.split_at_mut(second);
                assert!(gcm.start(true, &iv) && gcm.update(Span::in_place(head)));
                let mut calls = Vec::new();
                assert!(gcm.update_by(Span::in_place(middle), &mut |counter, blocks, is_data| {
                    calls.push((blocks.len(), is_data));
                    let at = blocks.len().saturating_sub(left);
                    let (now, later) = blocks.split_at(at);
                    ctr.ctr32(counter, now);
                    (!later.is_empty()).then_some(later)
                }));
                assert!(calls.iter().map(|call| call.1).is_sorted_by(|a, b| a > b), "{what}: {calls:?}");
                assert!(gcm.update(Span::in_place(tail)) && out == ciphertext, "{what}: {first} + {second}");
                assert_eq!(gcm.finish_seal(), Some(tag), "{what}: {first} + {second}");
            }
        }
    });
}
