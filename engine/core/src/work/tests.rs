use super::*;

#[test]
fn operations_have_words_for_users() {
    let names: Vec<_> = Operation::all().map(Operation::words).collect();
    for name in ["ECB encryption", "CTR", "CFB decryption", "GCM-SIV decryption", "CBC-MAC", "OCB encryption"]
    {
        assert!(names.contains(&name.to_owned()), "{name} of {names:?}");
    }
    let different: std::collections::HashSet<_> = names.iter().collect();
    assert_eq!(different.len(), names.len(), "{names:?}");
    assert!(names.iter().all(|name| name.len() <= 18), "{names:?}");
}
