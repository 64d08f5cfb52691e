//! Incremental OCB3.

use lockstep_reference::ocb;

use super::gcm::pieces;
use super::*;

/// Calls `test` for each kernel and key length.
fn each_ocb(mut test: impl FnMut(&Aes, InlineOcb, &str)) {
    for kernel in InlineKernel::all() {
        for len in KEY_LENGTHS {
            let key = bytes(len, len);
            let inline = InlineOcb::new(kernel, &key).unwrap();
            test(&Aes::new(&key), inline, &format!("{} AES-{}", kernel.name(), 8 * len));
        }
    }
}

/// Processes `data` in pieces of whole blocks, followed by the partial block. If `apart` is true, input and output are different buffers.
fn feed(inline: &mut InlineOcb, seed: usize, data: &[u8], apart: bool) -> Vec<u8> {
    let whole = data.len() & !15;
    let mut out = if apart { vec![0; data.len()] } else { data.to_vec() };
    let mut at = 0;
    for piece in pieces(seed, whole / 16) {
        let range = at..at + 16 * piece;
        let span = match apart {
            true => Span::copy(&data[range.clone()], &mut out[range]),
            false => Span::in_place(&mut out[range]),
        };
        // Calls of `blocks_by` and `blocks` may alternate. The closure gets all blocks of the piece in one call and returns them, so the
        // kernel processes them.
        if piece % 2 == 0 {
            inline.blocks_by(span, &mut |blocks| {
                assert_eq!(blocks.len(), 16 * piece);
                Some(blocks)
            });
        } else {
            inline.blocks(span);
        }
        at += 16 * piece;
    }
    if whole < data.len() {
        match apart {
            true => inline.last(Span::copy(&data[whole..], &mut out[whole..])),
            false => inline.last(Span::in_place(&mut out[whole..])),
        }
    }
    out
}

/// The widest step of a kernel has 32 blocks. The random pieces are such that a piece begins at each position in a step.
#[test]
fn any_split_of_ocb() {
    let lengths: Vec<usize> = (0..=200).step_by(7).chain([512, 528, 1024, 1040, 1300, 2064]).collect();
    each_ocb(|aes, mut inline, what| {
        for (number, &len) in lengths.iter().enumerate() {
            let nonce = bytes(number, [12, 1, 15, 8][number % 4]);
            let aad = bytes(number + 1, [0, 13, 16, 20, 1, 150][number % 6]);
            let tag_len = [16, 8, 1, 12][number % 4];
            let plaintext = bytes(number + 2, len);
            let (ciphertext, tag) = ocb::seal(aes, &nonce, &aad, &plaintext, tag_len);
            for seed in 0..3 {
                let apart = seed % 2 == 0;
                inline.start(true, &nonce, tag_len);
                let (head, tail) = aad.split_at(aad.len() / (seed + 2));
                inline.aad(head);
                let mut output = feed(&mut inline, seed + len, &plaintext, apart);
                inline.aad(tail);
                assert!(output == ciphertext, "{what}: {len} bytes");
                assert!(inline.finish_seal()[..tag_len] == tag, "{what}: {len} bytes");

                inline.start(false, &nonce, tag_len);
                inline.aad(&aad);
                let mut copy = inline.duplicate().unwrap();
                output = feed(&mut inline, seed + 9, &ciphertext, apart);
                assert!(output == plaintext, "{what}: {len} bytes decrypted");
                assert!(inline.finish_open(&tag), "{what}: {len} bytes");
                feed(&mut copy, seed, &ciphertext, apart);
                let mut wrong = tag.clone();
                wrong[tag_len - 1] ^= 0x80;
                assert!(!copy.finish_open(&wrong), "{what}: {len} bytes");
            }
        }
    });
}

/// The closure gets pieces of at most 4 MiB, so that the masks take little memory. It is not called if there are no data.
#[test]
fn long_ocb_is_given_to_the_caller_in_pieces() {
    const PIECE: usize = 4 << 20;
    let kernel = InlineKernel::all().next().unwrap();
    let mut inline = InlineOcb::new(kernel, &bytes(1, 16)).unwrap();
    for len in [0, PIECE, 2 * PIECE + 32] {
        let plaintext = vec![7; len];
        let [(by_kernel, one), (by_caller, other)] = [false, true].map(|by_caller| {
            inline.start(true, &[1; 12], 16);
            let (mut data, mut lengths) = (plaintext.clone(), Vec::new());
            if by_caller {
                inline.blocks_by(Span::in_place(&mut data), &mut |blocks| {
                    lengths.push(blocks.len());
                    Some(blocks)
                });
                assert_eq!(lengths.iter().sum::<usize>(), len);
                assert!(lengths.iter().rev().skip(1).all(|&len| len == PIECE) && !lengths.contains(&0));
            } else {
                inline.blocks(Span::in_place(&mut data));
            }
            (data, inline.finish_seal())
        });
        assert!(by_kernel == by_caller && one == other, "{len} bytes");
    }
}
