//! Encrypted Parquet files: arbitrary bytes, arbitrary plain files that are encrypted by a policy and read again,
//! authentic footers with any content, and changed files. The last byte of an input selects the test, and the bytes
//! before it are the file. So a seed is a file followed by one byte.
#![no_main]

use std::io;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use lockstep::{Engine, ReadAt};
use lockstep_parquet::{Algorithm, ColumnKey, Error, Keys, PlainView, Policy, ReadOptions, Result, encrypt};
use lockstep_reference as reference;

static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::builder().threads(1).build().expect("a CPU"));

const FOOTER: [u8; 32] = [7; 32];
const COLUMN: [u8; 16] = [9; 16];
/// NAMED is the column of the seeds that has its own key. PLAIN is the column that is not encrypted.
const NAMED: &str = "b";
const PLAIN: &str = "c";

/// A file that refuses reads of more bytes than it has. Such a read would show that the library allocates a buffer whose length it takes
/// from the file without a check.
struct File<'a>(&'a [u8]);

impl ReadAt for File<'_> {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        assert!(buffer.len() <= self.0.len(), "a buffer of {} bytes", buffer.len());
        ReadAt::read_exact_at(self.0, buffer, offset)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&choice, rest)) = input.split_last() else { return };
    match choice % 4 {
        0 => arbitrary(rest, choice),
        1 => arbitrary(&framed(rest, choice), choice),
        2 => round_trip(rest, choice),
        _ => resealed(rest, choice),
    }
});

fn options(allows_missing_aad: bool, allows_unauthenticated_pages: bool) -> ReadOptions<'static> {
    ReadOptions { allows_missing_aad, allows_unauthenticated_pages, ..ReadOptions::default() }
}

fn keys(has_column: bool) -> Keys {
    let keys = Keys::new().footer(&FOOTER);
    if has_column { keys.column(NAMED, &COLUMN) } else { keys }
}

/// Decrypts the whole file, and then parts of the file. Each part must equal the same bytes of the whole plaintext.
fn read_all(file: &[u8], keys: &Keys, options: ReadOptions<'_>) -> Result<Vec<u8>> {
    let view = PlainView::open(&ENGINE, File(file), keys, options)?;
    // The plain form may be longer than the file, because it has some additional bytes for each column whose key is missing.
    assert!(view.len() < 4 * file.len() as u64 + (1 << 20), "{} bytes of {}", view.len(), file.len());
    let mut plain = vec![0; view.len() as usize];
    view.read_at(0, &mut plain)?;
    for (offset, len) in [(plain.len() / 3, 40), (plain.len() / 2, 1), (4, 200)] {
        let mut part = vec![0; len];
        let part = match view.read_at(offset as u64, &mut part) {
            Ok(count) => &part[..count],
            Err(Error::MissingKey(_)) => continue,
            Err(error) => panic!("a part of a readable file: {error}"),
        };
        assert_eq!(part, &plain[offset.min(plain.len())..][..part.len()]);
    }
    Ok(plain)
}

fn arbitrary(bytes: &[u8], choice: u8) {
    let has_column = choice & 4 != 0;
    if let Ok(plain) = read_all(bytes, &keys(has_column), options(choice & 8 != 0, true)) {
        let _ = encrypt(&*ENGINE, &File(&plain), Vec::new(), &policy(choice));
    }
    // Reads the file again, without a footer key and without a check of the footer.
    let unsigned = ReadOptions { allows_unauthenticated_footer: true, ..options(choice & 8 != 0, true) };
    let _ = read_all(bytes, &if has_column { Keys::new().column(NAMED, &COLUMN) } else { Keys::new() }, unsigned);
    let _ = encrypt(&*ENGINE, &File(bytes), Vec::new(), &policy(choice));
}

/// Makes a file with these bytes as pages and footer: adds the magic bytes at both ends, and the length of the footer.
fn framed(bytes: &[u8], choice: u8) -> Vec<u8> {
    let magic = if choice & 16 != 0 { b"PAR1" } else { b"PARE" };
    let (len, bytes) = bytes.split_first().map_or((0, bytes), |(len, rest)| (*len as usize * 4, rest));
    let len = len.min(bytes.len()) as u32;
    [&magic[..], bytes, &len.to_le_bytes(), magic].concat()
}

fn policy(choice: u8) -> Policy {
    let column = ColumnKey { path: NAMED.into(), key: COLUMN.to_vec().into(), key_metadata: None };
    Policy {
        algorithm: if choice & 4 != 0 { Algorithm::GcmV1 } else { Algorithm::GcmCtrV1 },
        plaintext_footer: choice & 8 != 0,
        columns: if choice & 16 != 0 { vec![column] } else { Vec::new() },
        plain_columns: if choice & 32 != 0 { vec![PLAIN.into()] } else { Vec::new() },
        ..Policy::uniform(&FOOTER)
    }
}

/// An encrypted file can be read, its plain form can be encrypted again, and a change is detected where the format
/// promises this.
fn round_trip(plain: &[u8], choice: u8) {
    let mut policy = policy(choice);
    let mut file = Vec::new();
    if let Err(Error::UnknownColumn { .. }) = encrypt(&*ENGINE, &File(plain), &mut file, &policy) {
        (policy.columns, policy.plain_columns) = (Vec::new(), Vec::new());
        file.clear();
        let _ = encrypt(&*ENGINE, &File(plain), &mut file, &policy);
    }
    // The magic bytes at the end of a file are written last. If they are missing, the encryption has failed.
    if !file.ends_with(b"PAR1") && !file.ends_with(b"PARE") || file.len() < 12 {
        return;
    }
    let keys = keys(!policy.columns.is_empty());
    let options = options(false, policy.algorithm == Algorithm::GcmCtrV1);
    let view = match read_all(&file, &keys, options) {
        Ok(view) => view,
        Err(error) => panic!("an encrypted file cannot be read: {error}"),
    };
    if policy.plain_columns.is_empty() {
        match encrypt(&*ENGINE, &File(&view), Vec::new(), &policy) {
            // To pad a page header, the writer appends a field, whose number is the number of the last field plus one. Some last fields
            // have the largest possible number.
            Err(Error::Malformed(what)) if what.contains("no room for another field") => {}
            outcome => outcome.expect("the plain form can be encrypted"),
        }
    }
    // A hash of the input selects the bit that is changed.
    let hash = plain.iter().fold(choice as usize, |hash, byte| hash.wrapping_mul(31) ^ *byte as usize);
    let mut changed = file.clone();
    changed[hash % file.len()] ^= 1 << (hash / file.len() % 8);
    let read = read_all(&changed, &keys, options);
    if policy.algorithm == Algorithm::GcmV1 && policy.plain_columns.is_empty() {
        assert!(read.is_err(), "a changed byte was not detected");
    }
    let _ = read_all(&file[..hash % file.len()], &keys, options);
}

/// The length in bytes of `FileCryptoMetaData` that contains a file identifier of 8 bytes and no prefix.
const CRYPTO: usize = 15;

/// Encrypts the plain file, changes its footer, and authenticates the footer again. The last byte of `input` is the number of edits. Each
/// edit is described by 4 of the bytes before it.
fn resealed(input: &[u8], choice: u8) {
    let Some((count, rest)) = input.split_last() else { return };
    let Some((plain, edits)) = rest.split_at_checked(rest.len().saturating_sub(4 * (*count as usize % 8)))
    else {
        return;
    };
    let policy = Policy { algorithm: policy(choice).algorithm, ..Policy::uniform(&FOOTER) };
    let mut file = Vec::new();
    if encrypt(&*ENGINE, &File(plain), &mut file, &policy).is_err() {
        return;
    }
    let end = file.len() - 8;
    let len = u32::from_le_bytes(file[end..end + 4].try_into().expect("4 bytes")) as usize;
    let (start, sealed) = (end - len, &file[end - len + CRYPTO..end]);
    // The associated data are the identifier of the file, followed by the type of the module.
    let aad = [&file[start + 4..start + 12], &[0]].concat();
    let (nonce, body) = sealed[4..].split_at(12);
    let (body, tag) = body.split_at(body.len() - 16);
    let aes = reference::Aes::new(&FOOTER);
    let mut footer = reference::gcm::open(&aes, nonce, &aad, body, tag).expect("the layout of the footer");
    for edit in edits.chunks_exact(4) {
        let at = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % (footer.len() + 1);
        match edit[2] % 4 {
            0 => footer.insert(at, edit[3]),
            1 => drop(footer.splice(at..at, [0xff, 0xff, 0xff, 0xff, edit[3] & 15])),
            2 if at < footer.len() => drop(footer.remove(at)),
            _ if at < footer.len() => footer[at] = edit[3],
            _ => {}
        }
    }
    let (body, tag) = reference::gcm::seal(&aes, nonce, &aad, &footer);
    let mut out = file[..start + CRYPTO].to_vec();
    out.extend(((12 + body.len() + 16) as u32).to_le_bytes());
    out.extend([nonce, &body, &tag].concat());
    out.extend(((out.len() - start) as u32).to_le_bytes());
    out.extend(b"PARE");
    if let Ok(plain) = read_all(&out, &keys(false), options(false, true)) {
        let _ = encrypt(&*ENGINE, &File(&plain), Vec::new(), &policy);
    }
}
