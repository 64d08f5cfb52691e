//! Keys do not remain in memory: a process uses the library with a key and drops everything, and its memory is searched.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::Write;
use std::process::Command;

use lockstep::aead::{self, Caller, CallingThread, Direction, HostData, HostMessage};
use lockstep::hazmat::Key;
use lockstep::hazmat::inline::InlineKernel;
use lockstep::hazmat::mode::{Aead, AeadKey, Cipher, CipherKey, Executor, hctr2::Hctr2Key};
use lockstep::hazmat::work::{Status, Tag};
use lockstep::hazmat::{data::Data, mode::aead::Message};
use lockstep::{EncryptWriter, Engine, FileKey, Options, Reader, keyfile};
use lockstep_testkit::residue;

/// The environment variable that names the folder for files. It is set only in the child process that uses the keys.
const FOLDER: &str = "LOCKSTEP_TEST_RESIDUE";

type Step = (&'static str, fn(&Engine, &[u8]));

const STEPS: [Step; 21] = [
    ("GCM", |engine, key| by_planner(engine, Aead::Gcm, 12, key)),
    ("GCM-SIV", |engine, key| by_planner(engine, Aead::GcmSiv, 12, key)),
    ("OCB", |engine, key| by_planner(engine, Aead::Ocb, 12, key)),
    ("SIV", |engine, key| by_planner(engine, Aead::Siv, 0, key)),
    ("CCM", |engine, key| by_planner(engine, Aead::Ccm, 12, key)),
    ("XAES", |engine, key| by_planner(engine, Aead::Xaes, 24, key)),
    ("EAX", |engine, key| by_planner(engine, Aead::Eax, 16, key)),
    ("GCM on the calling thread", |engine, key| on_calling_thread(engine, Aead::Gcm, 12, key)),
    ("GCM-SIV on the calling thread", |engine, key| on_calling_thread(engine, Aead::GcmSiv, 12, key)),
    ("OCB on the calling thread", |engine, key| on_calling_thread(engine, Aead::Ocb, 12, key)),
    ("SIV on the calling thread", |engine, key| on_calling_thread(engine, Aead::Siv, 0, key)),
    ("CCM on the calling thread", |engine, key| on_calling_thread(engine, Aead::Ccm, 12, key)),
    ("XAES on the calling thread", |engine, key| on_calling_thread(engine, Aead::Xaes, 24, key)),
    ("EAX on the calling thread", |engine, key| on_calling_thread(engine, Aead::Eax, 16, key)),
    // GCM with one string of associated data uses a context on the calling thread. This step uses tasks instead.
    ("tasks of GCM", |_, key| {
        one_mode(&CallingThread(InlineKernel::best()), &[40, 5_000], Aead::Gcm, 12, key)
    }),
    ("a batch", batch),
    ("raw keys", raw_keys),
    ("types of RustCrypto", |_, key| types_of_rustcrypto(key)),
    ("messages", messages),
    ("streams", streams),
    ("files", files),
];

/// Processes messages and batches on the calling thread. It uses the planner only for work that the calling thread
/// does not support.
struct OnCallingThread(Engine);

impl Caller for OnCallingThread {
    fn inline_kernel(&self) -> Option<InlineKernel> {
        Some(InlineKernel::best())
    }

    fn batch_limit(&self) -> usize {
        usize::MAX
    }

    fn engine(&self) -> aead::Result<Engine> {
        Ok(self.0.clone())
    }
}

fn by_planner(engine: &Engine, mode: Aead, nonce: usize, key: &[u8]) {
    one_mode(engine.planner(), &[40, 300_000], mode, nonce, key);
}

/// The short messages come after the long message: the planner processes the long one, and would wipe what short
/// messages leave.
fn on_calling_thread(engine: &Engine, mode: Aead, nonce: usize, key: &[u8]) {
    let caller = OnCallingThread(engine.clone());
    let aead_key = aead::Key::new(mode, key).unwrap();
    let iv = vec![1; nonce];
    for len in [300_000, 40, 5_000] {
        let (mut data, mut tag) = (vec![5; len], [0; 16]);
        aead_key.seal_in_place(&caller, &iv, &[b"aad"], &mut data, &mut tag).unwrap();
        aead_key.clone().open_in_place(&caller, &iv, &[b"aad"], &mut data, &tag).unwrap();
    }
}

fn batch(engine: &Engine, key: &[u8]) {
    let (mut data, mut tag) = ([5; 500], [0; 16]);
    let (data, tag) = (HostData::InPlace(&mut data), Tag::Write(&mut tag));
    let message = HostMessage { key, nonce: &[1; 12], aad: &[], data, tag, status: Status::Pending };
    let caller = OnCallingThread(engine.clone());
    aead::run_on_host(&caller, Aead::Gcm, Direction::Encrypt, &mut [message]).unwrap();
}

fn one_mode(executor: &dyn Executor, lengths: &[usize], mode: Aead, nonce: usize, key: &[u8]) {
    let key = AeadKey::new(mode, key).unwrap();
    let copy = key.clone();
    for &len in lengths {
        let (nonce, mut data, mut tag) = (vec![1; nonce], vec![5; len], [0; 16]);
        let mut sealed = [Message {
            key: &key,
            nonce: &nonce,
            aad: &[b"aad"],
            data: Data::in_place(&mut data),
            tag: Tag::Write(&mut tag),
            status: Status::Pending,
        }];
        mode.seal(executor, &mut sealed).unwrap();
        let mut opened = [Message {
            key: &copy,
            nonce: &nonce,
            aad: &[b"aad"],
            data: Data::in_place(&mut data),
            tag: Tag::Expect(&tag),
            status: Status::Pending,
        }];
        mode.open(executor, &mut opened).unwrap();
    }
}

fn raw_keys(engine: &Engine, key: &[u8]) {
    let aes = Key::new(key).unwrap();
    aes.round_keys();
    drop(Box::new(aes.clone()));
    Hctr2Key::new(engine.planner(), aes).unwrap();
    drop(CipherKey::new(Cipher::Xts, key).unwrap().clone());
}

fn types_of_rustcrypto(key: &[u8]) {
    use lockstep::rustcrypto::cipher::{
        BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, KeyInit, KeyIvInit, StreamCipher,
    };
    use lockstep::rustcrypto::{Aes256, Aes256Gcm, aead::AeadInOut, cbc, ctr};

    let key = key.try_into().unwrap();
    let mut data = [5; 500];
    let gcm = Aes256Gcm::new(key);
    gcm.clone().encrypt_inout_detached(&[1; 12].into(), b"aad", data.as_mut_slice().into()).unwrap();
    let mut stream = ctr::Ctr32BE::<Aes256>::new(key, &[1; 16].into());
    stream.clone().apply_keystream(&mut data);
    stream.apply_keystream(&mut data);
    let mut blocks = [[5; 16].into(); 70];
    cbc::Decryptor::<Aes256>::new(key, &[1; 16].into()).decrypt_blocks(&mut blocks);
    cbc::Encryptor::<Aes256>::new(key, &[1; 16].into()).encrypt_blocks(&mut blocks);
    Aes256::new(key).clone().encrypt_blocks(&mut blocks);
}

fn messages(engine: &Engine, key: &[u8]) {
    let key = FileKey::from_bytes(key).unwrap();
    let sealed = lockstep::seal(engine, &key.clone(), b"context", &vec![3; 100_000]).unwrap();
    lockstep::open(engine, &key, b"context", &sealed).unwrap();
}

fn streams(engine: &Engine, key: &[u8]) {
    let key = FileKey::from_bytes(key).unwrap();
    let mut writer = EncryptWriter::new(engine, &key, b"", Vec::new()).unwrap();
    writer.write_all(&vec![3; 100_000]).unwrap();
    let sealed = writer.finish().unwrap();
    let mut plain = Vec::new();
    lockstep::decrypt(engine, &key, b"", &sealed[..], &mut plain, Options::default()).unwrap();
    Reader::open(engine, &key, b"", &sealed[..]).unwrap().read_at(70_000, &mut plain[..10]).unwrap();
    let mut sink = Vec::new();
    lockstep::encrypt(engine, &key, b"", &plain[..], &mut sink, Options::default()).unwrap();
}

fn files(engine: &Engine, key: &[u8]) {
    let folder = std::path::PathBuf::from(std::env::var_os(FOLDER).unwrap());
    let path = |name: &str| folder.join(name);
    keyfile::create(&path("key"), &FileKey::from_bytes(key).unwrap()).unwrap();
    let key = keyfile::read(&path("key")).unwrap();
    fs::write(path("plain"), vec![3; 100_000]).unwrap();
    lockstep::encrypt_file(engine, &key, b"", &path("plain"), &path("sealed"), Default::default()).unwrap();
    lockstep::decrypt_file(engine, &key, b"", &path("sealed"), &path("opened"), Default::default()).unwrap();
}

/// This test runs in the child process whose memory is searched.
#[test]
fn uses_keys() {
    if std::env::var_os(FOLDER).is_none() {
        return;
    }
    let engine = Engine::builder().device("cpu").threads(2).build().unwrap();
    let engine = &engine;
    let steps = STEPS.map(|(name, step)| (name, move |key: &[u8]| step(engine, key)));
    residue::use_keys(&steps, |key| Key::new(key).unwrap());
}

#[test]
fn no_key_remains_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["residue::uses_keys", "--exact", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder.path());
    residue::assert_no_residue(child, STEPS.len());
}
