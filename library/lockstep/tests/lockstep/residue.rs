//! Keys do not remain in memory: a process uses the library with a key and drops everything, and its memory is searched.

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

use lockstep::aead::{self, Caller, CallingThread, Direction, HostData, HostMessage};
use lockstep::hazmat::Key;
use lockstep::hazmat::inline::InlineKernel;
use lockstep::hazmat::mode::{Aead, AeadKey, Cipher, CipherKey, Executor, hctr2::Hctr2Key};
use lockstep::hazmat::work::{Status, Tag};
use lockstep::hazmat::{data::Data, mode::aead::Message};
use lockstep::{EncryptWriter, Engine, FileKey, Options, Reader, keyfile};
use lockstep_reference::Aes;

/// The variable with the folder for files. It is set only in the process that uses the keys.
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
    use lockstep::rustcrypto::cipher::{BlockModeDecrypt, KeyInit, KeyIvInit, StreamCipher};
    use lockstep::rustcrypto::{Aes256, Aes256Gcm, aead::AeadInOut, cbc, ctr};

    let key = key.try_into().unwrap();
    let mut data = [5; 500];
    let gcm = Aes256Gcm::new(key);
    gcm.clone().encrypt_inout_detached(&[1; 12].into(), b"aad", data.as_mut_slice().into()).unwrap();
    let mut stream = ctr::Ctr32BE::<Aes256>::new(key, &[1; 16].into());
    stream.clone().apply_keystream(&mut data);
    stream.apply_keystream(&mut data);
    cbc::Decryptor::<Aes256>::new(key, &[1; 16].into()).decrypt_blocks(&mut [[5; 16].into(); 70]);
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

/// A byte of the key of a step, computed from its index, so that the program does not contain the whole key.
fn byte(step: usize, index: usize) -> u8 {
    let mut value = ((step as u64 + 1) << 32) | (index as u64 + 1);
    for _ in 0..3 {
        value = (value ^ value >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    (value >> 56) as u8
}

/// Waits until the process that searches the memory has written a byte.
fn wait() {
    std::io::stdin().read_exact(&mut [0]).unwrap();
}

/// The process whose memory is searched. It prints a line after each step.
#[test]
fn uses_keys() {
    if std::env::var_os(FOLDER).is_none() {
        return;
    }
    let engine = Engine::builder().device("cpu").threads(2).build().unwrap();
    let mut key = vec![0; 32];
    for (number, (name, step)) in STEPS.iter().enumerate() {
        wait();
        (0..32).for_each(|index| key[index] = byte(number, index));
        step(&engine, &key);
        key.fill(0);
        println!("step {name}");
    }
    wait();
    (0..32).for_each(|index| key[index] = byte(STEPS.len(), index));
    // The control: this key is still in use, so the search must find it.
    let alive = Key::new(&key).unwrap();
    key.fill(0);
    println!("step control");
    wait();
    drop(alive);
}

/// The halves of the key of a step, round keys, and H of GCM.
fn secrets(step: usize) -> BTreeMap<&'static str, [u8; 16]> {
    let key: Vec<u8> = (0..32).map(|index| byte(step, index)).collect();
    let aes = Aes::new(&key);
    BTreeMap::from([
        ("the first half of the key", *key.first_chunk().unwrap()),
        ("the second half of the key", *key.last_chunk().unwrap()),
        ("a round key", aes.round_keys()[2]),
        ("the last round key", aes.round_keys()[14]),
        ("H of GCM", aes.encrypt([0; 16])),
    ])
}

/// True if the memory contains the secret. The first byte is searched by the standard library, which is optimised in
/// every profile.
fn contains(memory: &[u8], secret: &[u8; 16]) -> bool {
    let mut rest = memory;
    while rest.skip_until(secret[0]).unwrap() > 0 {
        if rest.starts_with(&secret[1..]) {
            return true;
        }
    }
    false
}

/// The secrets of a step that are in the writable memory of a process, with their places.
fn search(process: u32, secrets: &BTreeMap<&'static str, [u8; 16]>) -> Vec<String> {
    let memory = File::open(format!("/proc/{process}/mem")).unwrap();
    let mut found = Vec::new();
    for line in fs::read_to_string(format!("/proc/{process}/maps")).unwrap().lines() {
        let mut words = line.split_whitespace();
        let (Some(range), Some(rights)) = (words.next(), words.next()) else { continue };
        let name = words.nth(3).unwrap_or("memory");
        if !rights.starts_with("rw") || name.starts_with("[vv") {
            continue;
        }
        let (start, end) = range.split_once('-').unwrap();
        let [start, end] = [start, end].map(|address| u64::from_str_radix(address, 16).unwrap());
        let mut content = vec![0; (end - start) as usize];
        if memory.read_exact_at(&mut content, start).is_err() {
            continue;
        }
        let here = secrets.iter().filter(|(_, secret)| contains(&content, secret));
        found.extend(here.map(|(what, _)| format!("{what} in {name}")));
    }
    found
}

#[test]
fn no_key_remains_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["residue::uses_keys", "--exact", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder.path())
        // Lazy binding saves all registers on the stack at the first call of a function.
        .env("LD_BIND_NOW", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut input = child.stdin.take().unwrap();
    let (mut found, mut is_control_found) = (Vec::new(), false);
    for step in 0..=STEPS.len() {
        input.write_all(b"x").unwrap();
        let line = lines.find(|line| line.contains("step ")).expect("a line after each step");
        let here = search(child.id(), &secrets(step));
        if step == STEPS.len() {
            is_control_found = !here.is_empty();
        } else {
            found.extend(here.iter().map(|what| format!("{line}: {what}")));
        }
    }
    input.write_all(b"x").unwrap();
    drop(input);
    lines.for_each(drop);
    assert!(child.wait().unwrap().success());
    assert!(is_control_found, "the search did not find the key that is alive");
    assert!(found.is_empty(), "{}", found.join("\n"));
}
