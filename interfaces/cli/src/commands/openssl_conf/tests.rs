
use super::*;

#[test]
fn every_setting_has_its_line() {
    for name in provider_settings::NAMES.into_iter().chain(["module"]) {
        let mut text = TEMPLATE.to_string();
        set(&mut text, name, "v");
        assert_eq!(text.lines().filter(|line| *line == format!("{name} = v")).count(), 1, "{name}");
        assert_eq!(text.lines().count(), TEMPLATE.lines().count());
    }
}

#[test]
fn special_characters_are_quoted_or_refused() {
    let quoted = |path: &str| quoted(Path::new(path)).map_err(|error| error.to_string());
    assert_eq!(quoted("/usr/lib64/a-b_c+1/lockstep.so").unwrap(), "/usr/lib64/a-b_c+1/lockstep.so");
    assert_eq!(quoted("/a b/l.so").unwrap(), "\"/a b/l.so\"");
    assert_eq!(quoted("/a\\n\"$x#'`;/l.so").unwrap(), "\"/a\\\\n\\\"$x#'`;/l.so\"");
    for bad in ["/a\nb", "/a\tb", "/$LIB/l.so", "/a${ORIGIN}/l.so", "/x$PLATFORM"] {
        assert!(quoted(bad).unwrap_err().contains("cannot be written in openssl.cnf"), "{bad}");
    }
}
