
use super::*;

#[test]
fn a_part_replaces_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let (engine, key) = (Engine::builder().device("cpu").build().unwrap(), FileKey::generate().unwrap());
    let message = crate::seal(&engine, &key, b"", &[7; 50_000]).unwrap();
    std::fs::write(&from, &message[..40_000]).unwrap();
    std::fs::write(&to, "precious").unwrap();
    let stream = Options::new().partial(true);
    let options = FileOptions { stream, force: true, ..Default::default() };
    let decrypt = || decrypt_file(&engine, &key, b"", &from, &to, options);
    let error = decrypt().unwrap_err();
    assert!(error.is_authentication_failure() && !matches!(error, Error::Partial { .. }), "{error}");
    assert_eq!(std::fs::read(&to).unwrap(), b"precious");
    std::fs::remove_file(&to).unwrap();
    assert!(matches!(decrypt(), Err(Error::Partial { verified: 32768, .. })));
    assert_eq!(std::fs::read(&to).unwrap(), [7; 32768]);
    // A complete output replaces it.
    std::fs::write(&from, &message).unwrap();
    decrypt().unwrap();
    assert_eq!(std::fs::read(&to).unwrap(), [7; 50_000]);
}
