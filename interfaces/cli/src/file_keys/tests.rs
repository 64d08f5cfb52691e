
use super::*;

#[test]
fn options_are_replaced_outside_of_names() {
    for (message, expected) in [
        ("'a' is a Lockstep key file: give it with -k", "'a' is a Lockstep key file: give it as the key"),
        (
            "'omit -i' and '\\'omit -i\\\\': omit -i",
            "'omit -i' and '\\'omit -i\\\\': give its passphrase instead",
        ),
    ] {
        assert_eq!(replace_options(message), expected);
    }
}
