//! Tests that each defect of an age file causes the right failure.

use super::*;

const CONTENT: &[u8] = b"the key of a file";
/// The scrypt work factor of the tests. It is small, so that the tests are short.
const WORK: u8 = 4;

fn sealed() -> (Identity, Vec<u8>) {
    let identity = Identity::generate().unwrap();
    let others = [Identity::generate().unwrap().recipient(), identity.recipient()];
    let file = seal_to(&others, CONTENT).unwrap();
    (identity, file)
}

fn open(file: &[u8], identity: &Identity) -> Result<Zeroizing<Vec<u8>>, Failure> {
    File::read(file).ok_or(Failure::Damaged)?.open_by(std::slice::from_ref(identity))
}

fn open_by_passphrase(file: &[u8], passphrase: &str) -> Result<Zeroizing<Vec<u8>>, Failure> {
    File::read(file).ok_or(Failure::Damaged)?.open_by_passphrase(passphrase, WORK)
}

fn is<T>(result: Result<T, Failure>, expected: fn(&Failure) -> bool, label: &str) {
    assert!(result.as_ref().err().is_some_and(expected), "{label}");
}

/// Returns the file with a part of its text replaced.
fn replaced(file: &[u8], from: &str, to: &str) -> Vec<u8> {
    let at = file.windows(from.len()).position(|part| part == from.as_bytes()).expect("it has the part");
    [&file[..at], to.as_bytes(), &file[at + from.len()..]].concat()
}

/// A file whose stanzas are those that `stanzas` makes for the file key, and whose MAC is right.
fn with_stanzas(stanzas: impl FnOnce(&[u8]) -> String) -> Vec<u8> {
    seal(CONTENT, |file_key| Some(stanzas(file_key))).unwrap()
}

#[test]
fn files_are_opened_by_their_recipients_only() {
    let (identity, file) = sealed();
    assert_eq!(open(&file, &identity).ok().unwrap().as_slice(), CONTENT);
    is(open(&file, &Identity::generate().unwrap()), |it| matches!(it, Failure::NoMatch), "another identity");
    let again = Identity::parse(&identity.to_text()).unwrap();
    assert_eq!(again.recipient().to_text(), identity.recipient().to_text());
    assert_eq!(open(&file, &again).ok().unwrap().as_slice(), CONTENT);
}

/// The change of any bit in the file is detected. After a change in the stanza of the recipient, the file counts as a file for other
/// recipients. After any other change, the file counts as damaged.
#[test]
fn every_change_is_found() {
    let (identity, file) = sealed();
    let text = String::from_utf8_lossy(&file);
    let start = text.match_indices("-> X25519").nth(1).unwrap().0;
    let end = text.find("---").unwrap();
    for at in 0..file.len() {
        let mut changed = file.clone();
        changed[at] ^= 1;
        let result = open(&changed, &identity);
        let label = format!("byte {at}");
        if (start..end).contains(&at) {
            is(result, |it| matches!(it, Failure::Damaged | Failure::NoMatch), &label);
        } else {
            // The change is in the version, the stanza of another recipient, the MAC, the nonce or the content.
            is(result, |it| matches!(it, Failure::Damaged), &label);
        }
    }
    for len in 0..file.len() {
        is(open(&file[..len], &identity), |it| matches!(it, Failure::Damaged), &format!("{len} bytes"));
    }
}

/// The MAC detects changes that the stanzas alone do not show.
#[test]
fn the_header_is_authenticated() {
    let (identity, file) = sealed();
    let text = String::from_utf8_lossy(&file);
    let second = text.match_indices("-> X25519").nth(1).unwrap().0;
    let first = VERSION.len() + 1;
    let without_another = [&file[..first], &file[second..]].concat();
    is(open(&without_another, &identity), |it| matches!(it, Failure::Damaged), "a stanza is missing");
    let added = replaced(&file, "--- ", "-> other x\n\n--- ");
    is(open(&added, &identity), |it| matches!(it, Failure::Damaged), "a stanza was added");
}

#[test]
fn passphrases() {
    let file = seal_by_passphrase("right", WORK, CONTENT).unwrap();
    assert!(File::read(&file).unwrap().has_passphrase());
    assert_eq!(open_by_passphrase(&file, "right").ok().unwrap().as_slice(), CONTENT);
    is(open_by_passphrase(&file, "wrong"), |it| matches!(it, Failure::WrongPassphrase), "wrong");
    let factor = |to: &str| {
        let text = String::from_utf8_lossy(&file);
        let line = text.lines().nth(1).unwrap();
        replaced(&file, line, &line.replace(" 4", to))
    };
    is(open_by_passphrase(&factor(" 5"), "right"), |it| matches!(it, Failure::Work(5)), "above the limit");
    is(
        open_by_passphrase(&factor(" 255"), "right"),
        |it| matches!(it, Failure::Work(255)),
        "above the limit",
    );
    is(
        open_by_passphrase(&factor(" 3"), "right"),
        |it| matches!(it, Failure::WrongPassphrase),
        "another factor",
    );
    for bad in ["", " ", " 04", " +4", " 0", " 256", " x", " 4 4", " -4"] {
        is(open_by_passphrase(&factor(bad), "right"), |it| matches!(it, Failure::Damaged), bad);
    }
}

#[test]
fn a_passphrase_is_the_only_recipient() {
    let identity = Identity::generate().unwrap();
    let file = with_stanzas(|file_key| {
        let ephemeral = Identity::generate().unwrap().0;
        let (share, recipient) = (PublicKey::from(&ephemeral), identity.recipient().0);
        let key = x25519_key(&ephemeral, &recipient, &share, &recipient).unwrap();
        let by_identity =
            stanza(&[X25519, &BASE64.encode(share.as_bytes())], &encrypt(&key, &[0; 12], file_key));
        let key = scrypt_key("right", &[7; 16], WORK).unwrap();
        let by_passphrase =
            stanza(&[SCRYPT, &BASE64.encode([7; 16]), "4"], &encrypt(&key, &[0; 12], file_key));
        by_identity + &by_passphrase
    });
    is(open_by_passphrase(&file, "right"), |it| matches!(it, Failure::Damaged), "two recipients");
    // The callers ask first whether the file has a passphrase.
    assert!(File::read(&file).unwrap().has_passphrase());
    is(open(&file, &identity), |it| matches!(it, Failure::Damaged), "two recipients");
}

#[test]
fn malformed_stanzas() {
    let header = |stanzas: &str| format!("{VERSION}\n{stanzas}--- {}\n", BASE64.encode([0; 32]));
    let (full, long) = ("A".repeat(64), "A".repeat(68));
    for good in [
        "-> x\n\n".to_string(),
        "-> x y ~!\nAAAA\n".to_string(),
        format!("-> x\n{full}\n\n"),
        format!("-> x\n{full}\nAA\n"),
    ] {
        assert!(File::read(header(&good).as_bytes()).is_some(), "{good}");
    }
    for bad in [
        "->\n\n".to_string(),
        "-> \n\n".to_string(),
        "->x\n\n".to_string(),
        "-> x \n\n".to_string(),
        "-> x  y\n\n".to_string(),
        "-> x\ty\n\n".to_string(),
        "-> \u{e9}\n\n".to_string(),
        "-> x\r\n\n".to_string(),
        "-> x\n".to_string(),
        "-> x\nAAA=\n".to_string(),
        "-> x\nA\n".to_string(),
        // The last bits of the second character are not part of any byte, and must be 0, but they are not.
        "-> x\nAB\n".to_string(),
        format!("-> x\n{full}\n"),
        format!("-> x\n{long}\n"),
        format!("-> x\n{full}\n{long}\n"),
    ] {
        assert!(File::read(header(&bad).as_bytes()).is_none(), "{bad}");
    }
}

#[test]
fn malformed_arguments_of_x25519() {
    let identity = Identity::generate().unwrap();
    let zeros = BASE64.encode([0; 32]);
    let body = [0; 32];
    for arguments in [
        &[X25519][..],
        &[X25519, &zeros, "x"],
        &[X25519, "AAAA"],
        // The share is a point of low order.
        &[X25519, &zeros],
    ] {
        let file = with_stanzas(|_| stanza(arguments, &body));
        is(open(&file, &identity), |it| matches!(it, Failure::Damaged), &arguments.join(" "));
    }
}

#[test]
fn malformed_texts() {
    let identity = Identity::generate().unwrap();
    let (secret, public) = (identity.to_text(), identity.recipient().to_text());
    assert!(Identity::parse(&secret).is_some() && Recipient::parse(&public).is_some());
    assert!(Identity::parse(&secret.to_lowercase()).is_none());
    assert!(Recipient::parse(&public.to_uppercase()).is_none());
    assert!(Identity::parse(&public).is_none() && Recipient::parse(&secret).is_none());
    assert!(Recipient::parse(&public[..public.len() - 1]).is_none());
    // Points of low order: 0, 1, and -1 modulo 2^255 - 19.
    let minus_one = [&[0xec][..], &[0xff; 30], &[0x7f]].concat();
    let one = [&[1][..], &[0; 31]].concat();
    for point in [&[0; 32][..], &one, &minus_one] {
        let text = bech32::encode_lower::<Bech32>(RECIPIENT, point).unwrap();
        assert!(Recipient::parse(&text).is_none(), "{text}");
    }
}

/// Test vectors of C2SP.
mod vectors {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;

    use sha2::{Digest, Sha256};

    use super::*;

    /// The greatest scrypt work factor of the vectors that can be opened is 10.
    const MOST_WORK: u8 = 10;

    fn open(file: &[u8], fields: &BTreeMap<&str, Vec<&str>>) -> Result<Zeroizing<Vec<u8>>, Failure> {
        let file = File::read(file).ok_or(Failure::Damaged)?;
        let all = |name| fields.get(name).cloned().unwrap_or_default();
        // The program that calls the reader chooses by the stanzas, as `has_passphrase` states, and needs the kind of key that they have.
        if file.has_passphrase() {
            let [passphrase] = all("passphrase")[..] else { return Err(Failure::Damaged) };
            return file.open_by_passphrase(passphrase, MOST_WORK);
        }
        let identities = all("identity").into_iter().map(|text| Identity::parse(text).expect("an identity"));
        file.open_by(&identities.collect::<Vec<_>>())
    }

    #[test]
    fn each_vector_has_the_stated_outcome() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/age/vectors");
        let mut outcomes = BTreeMap::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some() {
                continue;
            }
            let name = path.file_name().unwrap().to_str().unwrap();
            let content = fs::read(&path).unwrap();
            let end =
                content.windows(2).position(|two| two == b"\n\n").expect("an empty line ends the fields");
            let mut fields: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            for line in str::from_utf8(&content[..end]).unwrap().lines() {
                let (key, value) = line.split_once(": ").unwrap();
                fields.entry(key).or_default().push(value);
            }
            let result = open(&content[end + 2..], &fields);
            let expected = fields["expect"][0];
            let is_right = match (expected, &result) {
                ("success", Ok(plain)) => {
                    let digest = Sha256::digest(plain);
                    digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
                        == fields["payload"][0]
                }
                ("no match", Err(Failure::NoMatch | Failure::WrongPassphrase)) => true,
                ("header failure", Err(Failure::Damaged | Failure::Work(_))) => true,
                ("HMAC failure" | "payload failure", Err(Failure::Damaged)) => true,
                _ => false,
            };
            assert!(is_right, "{name}: {expected} is expected");
            *outcomes.entry(expected.to_owned()).or_insert(0) += 1;
        }
        let counts =
            outcomes.iter().map(|(outcome, count)| format!("{outcome}: {count}")).collect::<Vec<_>>();
        assert_eq!(
            counts.join(", "),
            "HMAC failure: 1, header failure: 51, no match: 7, payload failure: 5, success: 8"
        );
    }
}
