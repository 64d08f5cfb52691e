//! Errors, clones, secrets.

use cipher::consts::{U10, U12, U13};
use cipher::zeroize::ZeroizeOnDrop;
use cipher::{BlockCipherEncrypt, KeyIvInit, StreamCipher, StreamCipherSeek};
use lockstep::rustcrypto::aead::array::Array;
use lockstep::rustcrypto::aead::inout::InOutBuf;
use lockstep::rustcrypto::aead::{Aead, AeadInOut, Error, KeyInit};
use lockstep::rustcrypto::{Aes128, Aes128Gcm, Aes256, Aes256GcmSiv, Ccm, Key, Nonce, Tag, cbc, ctr};

#[test]
fn a_wrong_tag_is_an_error_and_leaves_no_plaintext() {
    let cipher = Aes128Gcm::new(&[7; 16].into());
    let nonce = Array([1; 12]);
    for len in [1, 100, 20_000] {
        let plain = vec![0x55; len];
        let mut sealed = plain.clone();
        let mut tag = cipher.encrypt_inout_detached(&nonce, b"aad", sealed.as_mut_slice().into()).unwrap();
        tag[3] ^= 1;
        let mut in_place = sealed.clone();
        let outcome = cipher.decrypt_inout_detached(&nonce, b"aad", in_place.as_mut_slice().into(), &tag);
        assert_eq!((outcome, in_place), (Err(Error), vec![0; len]));
        let mut output = vec![1; len];
        let buffer = InOutBuf::new(&sealed, &mut output).unwrap();
        let outcome = cipher.decrypt_inout_detached(&nonce, b"aad", buffer, &tag);
        assert_eq!((outcome, output), (Err(Error), vec![0; len]));
    }
    for len in 0..16 {
        assert_eq!(cipher.decrypt(&nonce, &vec![0; len][..]), Err(Error), "shorter than a tag");
    }
}

/// All types of a process share one engine, so a separate process tests the device that does not exist.
#[test]
fn a_device_that_does_not_exist_is_an_error_and_changes_nothing() {
    const NAME: &str = "errors::a_device_that_does_not_exist_is_an_error_and_changes_nothing";
    if std::env::var_os("LOCKSTEP_DEVICE").is_none_or(|device| device != "absent:0") {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let output = child.args([NAME, "--exact"]).env("LOCKSTEP_DEVICE", "absent:0").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    let (cipher, nonce, tag) = (Aes128Gcm::new(&[7; 16].into()), Array([1; 12]), Array([2; 16]));
    for len in [1, 100, 20_000] {
        let (input, mut in_place, mut output) = (vec![0x55; len], vec![0x55; len], vec![1; len]);
        let outcome = cipher.decrypt_inout_detached(&nonce, b"", in_place.as_mut_slice().into(), &tag);
        assert_eq!((outcome, &in_place), (Err(Error), &input));
        assert!(cipher.encrypt_inout_detached(&nonce, b"", in_place.as_mut_slice().into()).is_err());
        assert_eq!(in_place, input);
        let buffer = InOutBuf::new(&input, &mut output).unwrap();
        let outcome = cipher.decrypt_inout_detached(&nonce, b"", buffer, &tag);
        assert_eq!((outcome, output), (Err(Error), vec![1; len]));
    }
}

/// With a nonce of 13 bytes, CCM allows messages of less than 64 KiB.
#[test]
fn a_message_beyond_the_limit_is_an_error() {
    let cipher = Ccm::<Aes128, U10, U13>::new(&[7; 16].into());
    let nonce = Array([1; 13]);
    assert!(cipher.encrypt(&nonce, &vec![0x55; 65_535][..]).is_ok());
    let plain = vec![0x55; 65_536];
    assert_eq!(cipher.encrypt(&nonce, &plain[..]), Err(Error));
    let mut in_place = plain.clone();
    assert!(cipher.encrypt_inout_detached(&nonce, b"", in_place.as_mut_slice().into()).is_err());
    assert!(in_place == plain, "unchanged in place");
    let mut output = vec![1; plain.len()];
    let buffer = InOutBuf::new(&plain, &mut output).unwrap();
    assert!(cipher.encrypt_inout_detached(&nonce, b"", buffer).is_err());
    assert!(output == vec![0; plain.len()], "no plaintext in another buffer");
}

#[test]
fn the_end_of_the_keystream_is_an_error() {
    let mut cipher = ctr::Ctr32BE::<Aes128>::new(&[7; 16].into(), &[1; 16].into());
    // There are 2^32 - 1 blocks.
    cipher.seek(16 * (u64::from(u32::MAX) - 2));
    let mut data = [0; 33];
    assert!(cipher.try_apply_keystream(&mut data).is_err());
    assert_eq!(data, [0; 33]);
    assert!(cipher.try_apply_keystream(&mut data[..32]).is_ok());
    assert!(cipher.try_apply_keystream(&mut data[..1]).is_err());
    assert!(cipher.try_seek(16_u64 << 32).is_err());
}

#[test]
fn clones_are_independent_and_have_the_same_key() {
    let cipher = Aes256GcmSiv::new(&[7; 32].into());
    let sealed = cipher.clone().encrypt(&[1; 12].into(), &b"hello"[..]).unwrap();
    assert_eq!(cipher.decrypt(&[1; 12].into(), &sealed[..]).unwrap(), b"hello");

    let mut stream = ctr::Ctr128BE::<Aes256>::new(&[7; 32].into(), &[1; 16].into());
    stream.apply_keystream(&mut [0; 21]);
    let mut copy = stream.clone();
    let [mut first, mut second] = [[0; 50]; 2];
    stream.apply_keystream(&mut first);
    copy.apply_keystream(&mut second);
    assert_eq!(first, second);

    let aes = Aes128::new(&[7; 16].into());
    let copy = aes.clone();
    let mut blocks = [Array([0; 16]); 2];
    copy.encrypt_block(&mut blocks[0]);
    drop(copy);
    aes.encrypt_block(&mut blocks[1]);
    assert_eq!(blocks[0], blocks[1]);
}

#[test]
fn secrets_are_not_printed_and_are_wiped() {
    fn is_wiped(_: &impl ZeroizeOnDrop) {}
    let (key, iv) = ([0x41; 32].into(), [0x42; 16].into());
    let gcm = lockstep::rustcrypto::Aes256Gcm::new(&key);
    let stream = ctr::Ctr64BE::<Aes256>::new(&key, &iv);
    let encryptor = cbc::Encryptor::<Aes256>::new(&key, &iv);
    let aes = Aes256::new(&key);
    is_wiped(&gcm);
    is_wiped(&stream);
    is_wiped(&encryptor);
    is_wiped(&aes);
    let shown = format!("{gcm:?} {:?} {encryptor:?} {aes:?}", stream.get_core());
    assert_eq!(shown, "GCM { .. } CtrCore { .. } Cbc { .. } Aes { .. }");
}

/// The types of the aliases are those that `aes_gcm` has, so that a program can name them.
#[test]
fn aliases_can_be_written_out() {
    type Long = lockstep::rustcrypto::AesGcm<Aes128, U12>;
    let key: Key<Long> = [7; 16].into();
    let cipher: Long = Aes128Gcm::new(&key);
    let nonce: Nonce<U12> = [1; 12].into();
    let tag: Tag = cipher.encrypt_inout_detached(&nonce, b"", (&mut [][..]).into()).unwrap();
    assert!(cipher.decrypt(&nonce, &tag[..]).unwrap().is_empty());
}
