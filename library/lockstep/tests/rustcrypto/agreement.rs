//! Results equal those of RustCrypto's implementations and of the reference implementation. The code is generic over the traits.

use std::any::type_name;

use cipher::block_padding::{Iso7816, Pkcs7};
use cipher::consts::{U7, U12, U15, U16};
use cipher::{
    BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, BlockSizeUser, KeyIvInit,
    StreamCipher, StreamCipherSeek,
};
use lockstep::rustcrypto as ours;
use lockstep::rustcrypto::aead::{Aead, AeadInOut, KeyInit, Payload};
use lockstep_reference::{self as reference, Aes};

fn bytes(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|i| (i * i / 5 + i / 256) as u8 ^ seed).collect()
}

/// Lengths on both sides of the inline limit, of pieces of 64 blocks, and of 16 bytes.
const LENGTHS: [usize; 12] = [0, 1, 15, 16, 17, 500, 1023, 1024, 1041, 16_384, 16_385, 100_000];

/// The nonce, plaintext and associated data of a message. The associated data are empty for two of the lengths.
fn message(nonce: usize, len: usize) -> [Vec<u8>; 3] {
    [bytes(nonce, 2), bytes(len, 3), bytes(len % 50, 4)]
}

fn sealed<C: AeadInOut + KeyInit>() -> Vec<Vec<u8>> {
    let key = bytes(C::key_size(), 1);
    let cipher = C::new_from_slice(&key).unwrap();
    let seal = |len| {
        let [nonce, msg, aad] = message(size::<C::NonceSize>(), len);
        let nonce = nonce.as_slice().try_into().unwrap();
        let sealed = cipher.encrypt(nonce, Payload { msg: &msg, aad: &aad }).unwrap();
        let copy = C::new_from_slice(&key).unwrap();
        let opened = copy.decrypt(nonce, Payload { msg: &sealed, aad: &aad }).unwrap();
        assert!(opened == msg, "{len} bytes");
        sealed
    };
    LENGTHS.map(seal).to_vec()
}

fn size<N: cipher::array::ArraySize>() -> usize {
    N::USIZE
}

#[test]
fn gcm() {
    assert!(sealed::<ours::Aes128Gcm>() == sealed::<aes_gcm::Aes128Gcm>());
    assert!(sealed::<ours::Aes256Gcm>() == sealed::<aes_gcm::Aes256Gcm>());
    // Another nonce, another tag, and a key of 192 bits.
    type Ours = ours::AesGcm<ours::Aes192, U16, U12>;
    type Theirs = aes_gcm::AesGcm<aes::Aes192, U16, U12>;
    assert!(sealed::<Ours>() == sealed::<Theirs>());
}

/// Compares with the reference implementation, which gets key, nonce, associated data and plaintext.
fn agrees<C: AeadInOut + KeyInit>(reference: impl Fn(&[u8], &[u8], &[u8], &[u8]) -> Vec<u8>) {
    let key = bytes(C::key_size(), 1);
    for (sealed, len) in sealed::<C>().into_iter().zip(LENGTHS) {
        let [nonce, msg, aad] = message(size::<C::NonceSize>(), len);
        assert!(sealed == reference(&key, &nonce, &aad, &msg), "{}: {len} bytes", type_name::<C>());
    }
}

/// RustCrypto's vectors have short messages only, so these modes are compared with the reference implementation too.
#[test]
fn other_authenticated_modes() {
    fn gcm_siv<C: AeadInOut + KeyInit>() {
        agrees::<C>(|key, nonce, aad, msg| {
            let (data, tag) = reference::gcm_siv::seal(key, nonce.try_into().unwrap(), aad, msg);
            [data, tag.to_vec()].concat()
        });
    }
    fn siv<C: AeadInOut + KeyInit>() {
        agrees::<C>(|key, nonce, aad, msg| {
            let (data, tag) = reference::siv::seal(key, &[aad, nonce], msg);
            [tag.to_vec(), data].concat()
        });
    }
    gcm_siv::<ours::Aes128GcmSiv>();
    gcm_siv::<ours::Aes256GcmSiv>();
    siv::<ours::Aes128SivAead>();
    siv::<ours::Aes256SivAead>();
    type Seal = fn(&Aes, &[u8], &[u8], &[u8], usize) -> (Vec<u8>, Vec<u8>);
    fn with_tags<C: AeadInOut + KeyInit>(seal: Seal) {
        agrees::<C>(|key, nonce, aad, msg| {
            let (data, tag) = seal(&Aes::new(key), nonce, aad, msg, size::<C::TagSize>());
            [data, tag].concat()
        });
    }
    with_tags::<ours::Ocb3<ours::Aes128>>(reference::ocb::seal);
    with_tags::<ours::Ocb3<ours::Aes256, U15, U12>>(reference::ocb::seal);
    with_tags::<ours::Eax<ours::Aes192>>(reference::eax::seal);
    with_tags::<ours::Eax<ours::Aes256, U12>>(reference::eax::seal);
    with_tags::<ours::Ccm<ours::Aes128, U16, U12>>(reference::ccm::seal);
    with_tags::<ours::Ccm<ours::Aes256, U12, U7>>(reference::ccm::seal);
}

fn blocks<C: BlockCipherEncrypt + BlockCipherDecrypt + BlockSizeUser<BlockSize = U16> + cipher::KeyInit>()
-> Vec<Vec<u8>> {
    let cipher = C::new_from_slice(&bytes(C::key_size(), 1)).unwrap();
    let run = |len: usize| {
        let plain: Vec<_> =
            bytes(16 * len, 2).as_chunks::<16>().0.iter().map(|block| (*block).into()).collect();
        let mut outputs = [plain.clone(), plain.clone()];
        cipher.encrypt_blocks(&mut outputs[0]);
        cipher.encrypt_blocks_b2b(&plain, &mut outputs[1]).unwrap();
        assert!(outputs[0] == outputs[1], "{len} blocks, in place or not");
        let mut again = outputs[0].clone();
        cipher.decrypt_blocks(&mut again);
        assert!(again == plain, "{len} blocks");
        outputs[0].iter().flatten().copied().collect()
    };
    [0, 1, 2, 63, 64, 65, 200].map(run).to_vec()
}

#[test]
fn block_ciphers() {
    assert!(blocks::<ours::Aes128>() == blocks::<aes::Aes128>());
    assert!(blocks::<ours::Aes192>() == blocks::<aes::Aes192>());
    assert!(blocks::<ours::Aes256>() == blocks::<aes::Aes256>());
}

/// The keystream from several positions, in pieces of different lengths.
fn keystreams<C: StreamCipher + StreamCipherSeek + KeyIvInit>(iv: u128) -> Vec<Vec<u8>> {
    let key = bytes(C::key_size(), 1);
    let new = || C::new_from_slices(&key, &iv.to_be_bytes()).unwrap();
    let run = |position: u64| {
        let (input, mut whole) = (bytes(5000, 2), vec![0; 5000]);
        let mut cipher = new();
        cipher.seek(position);
        cipher.apply_keystream_b2b(&input, &mut whole);
        assert_eq!(cipher.current_pos::<u64>(), position + 5000);
        let (mut pieces, mut cipher) = (input, new());
        cipher.seek(position);
        let mut rest = &mut pieces[..];
        for len in (0..).map(|i| i * 7 % 333) {
            let (piece, following) = rest.split_at_mut(len.min(rest.len()));
            cipher.apply_keystream(piece);
            rest = following;
            if rest.is_empty() {
                break;
            }
        }
        assert!(pieces == whole, "in pieces");
        whole
    };
    [0, 1, 16, 777, 65_536].map(run).to_vec()
}

/// IVs after which the low 32, 64 or 128 bits of the counter wrap within a few blocks.
const IVS: [u128; 5] =
    [0, u32::MAX as u128 - 5, u64::MAX as u128 - 5, u128::MAX - 5, 0x1234_5678_9abc_def0 << 64 | 7];

#[test]
fn counter_modes() {
    for iv in IVS {
        let ours_now = keystreams::<ours::ctr::Ctr128BE<ours::Aes256>>(iv);
        assert!(ours_now == keystreams::<ctr::Ctr128BE<aes::Aes256>>(iv), "{iv:x}");
        let ours_now = keystreams::<ours::ctr::Ctr64BE<ours::Aes192>>(iv);
        assert!(ours_now == keystreams::<ctr::Ctr64BE<aes::Aes192>>(iv), "{iv:x}");
        let ours_now = keystreams::<ours::ctr::Ctr32BE<ours::Aes128>>(iv);
        assert!(ours_now == keystreams::<ctr::Ctr32BE<aes::Aes128>>(iv), "{iv:x}");
        // The type `ctr::Ctr64LE` of RustCrypto, with the block cipher of this crate.
        let ours_now = keystreams::<ctr::Ctr64LE<ours::Aes256>>(iv);
        assert!(ours_now == keystreams::<ctr::Ctr64LE<aes::Aes256>>(iv), "{iv:x}");
    }
}

fn cbc<E: BlockModeEncrypt + KeyIvInit, D: BlockModeDecrypt + KeyIvInit>() -> Vec<Vec<u8>> {
    let (key, iv) = (bytes(E::key_size(), 1), bytes(16, 2));
    let new_encryptor = || E::new_from_slices(&key, &iv).unwrap();
    let new_decryptor = || D::new_from_slices(&key, &iv).unwrap();
    let run = |len| {
        let plain = bytes(len, 3);
        let encrypted = new_encryptor().encrypt_padded_vec::<Pkcs7>(&plain);
        assert!(new_decryptor().decrypt_padded_vec::<Pkcs7>(&encrypted).unwrap() == plain, "{len} bytes");
        let mut in_place = [&plain[..], &[0; 16]].concat();
        let other_padding = new_encryptor().encrypt_padded::<Iso7816>(&mut in_place, len).unwrap().to_vec();
        assert!(
            new_decryptor().decrypt_padded::<Pkcs7>(&mut in_place.clone()).is_err(),
            "{len}: another padding"
        );
        [encrypted, other_padding].concat()
    };
    LENGTHS.map(run).to_vec()
}

#[test]
fn cbc_with_padding() {
    assert!(
        cbc::<ours::cbc::Encryptor<ours::Aes128>, ours::cbc::Decryptor<ours::Aes128>>()
            == cbc::<::cbc::Encryptor<aes::Aes128>, ::cbc::Decryptor<aes::Aes128>>()
    );
    assert!(
        cbc::<ours::cbc::Encryptor<ours::Aes256>, ours::cbc::Decryptor<ours::Aes256>>()
            == cbc::<::cbc::Encryptor<aes::Aes256>, ::cbc::Decryptor<aes::Aes256>>()
    );
}
