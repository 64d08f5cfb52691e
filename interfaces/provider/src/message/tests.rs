
use super::*;

#[test]
fn texts_contain_no_line_breaks_and_control_characters() {
    assert_eq!(
        escaped("x\x1b[31m\r\n\tlockstep: \u{9b}\u{202e}"),
        r"x\x1b[31m\r\n\tlockstep: \u{9b}\u{202e}"
    );
    let plain = "no device `cuda:77`: 'ä' \"b\" \\";
    assert_eq!(escaped(plain), plain);
}
