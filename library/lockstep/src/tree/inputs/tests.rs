
use super::*;

#[test]
fn the_suffix_is_added_and_removed() {
    for name in ["a", "a.txt", ".hidden", "a.enc", " "] {
        let name = OsStr::new(name);
        assert_eq!(decrypted(&encrypted(name)).as_deref(), Some(name));
    }
    let not_utf8 = OsStr::from_bytes(b"\xff\xfe");
    assert_eq!(decrypted(&encrypted(not_utf8)).as_deref(), Some(not_utf8));
}

#[test]
fn names_outside_the_folder_are_refused() {
    for name in [".enc", "..enc", "...enc", "a", "a.ENC", "enc", "a.enc.bak"] {
        assert_eq!(decrypted(OsStr::new(name)), None, "{name}");
    }
}
