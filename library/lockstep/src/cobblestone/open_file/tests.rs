
use std::io::SeekFrom;

use super::*;

#[test]
fn a_file_that_shrinks_has_no_end() {
    let file = tempfile::tempfile().unwrap();
    let engine = Engine::builder().device("cpu").threads(1).build().unwrap();
    let key = FileKey::generate().unwrap();
    let encrypt = |options| encrypt_open_file(&engine, &key, b"", &file, io::sink(), options);
    let set_len = |len| file.set_len(len).unwrap();
    set_len(900_000);
    let shrink = |_| set_len(600_000);
    let failed = encrypt(Options::new().progress(&shrink)).unwrap_err();
    assert!(matches!(failed, Error::InputChanged { before: 900_000, now: 600_000 }), "{failed}");
    assert!(failed.to_string().contains("shorter"), "{failed}");
    (&file).seek(SeekFrom::Start(599_000)).unwrap();
    assert_eq!(encrypt(Options::new()).unwrap().plaintext_len, 1000);
    (&file).seek(SeekFrom::Start(700_000)).unwrap();
    assert_eq!(encrypt(Options::new()).unwrap().plaintext_len, 0);
}
