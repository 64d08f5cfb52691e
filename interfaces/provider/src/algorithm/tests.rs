
use super::*;

#[test]
fn names_contain_mode_and_key_length() {
    for algorithm in ALGORITHMS {
        let name = algorithm.name();
        let has_two_keys = matches!(algorithm.mode, Mode::Xts | Mode::Siv);
        let bits = if has_two_keys { 4 } else { 8 } * algorithm.key_len;
        let mode = format!("{:?}", algorithm.mode).to_uppercase().replace("CFB128", "CFB");
        let bare = name.strip_prefix(&format!("AES-{bits}-")).unwrap_or_default();
        assert_eq!(bare.replace('-', ""), mode);
        assert!(algorithm.description.to_str().unwrap().starts_with(&format!("AES-{bits} ")));
    }
}

#[test]
fn names_are_unique() {
    let names: Vec<&str> =
        ALGORITHMS.iter().flat_map(|algorithm| algorithm.names.to_str().unwrap().split(':')).collect();
    for (i, name) in names.iter().enumerate() {
        assert!(!names[..i].contains(name), "{name}");
    }
}
