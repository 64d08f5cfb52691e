
use super::*;

fn all() -> Vec<(String, &'static str)> {
    let of = |(name, words): &(&'static str, &str)| {
        let name = *name;
        let wrong = mistakes(name, words);
        wrong.iter().map(|wrong| (wrong.to_str().unwrap().to_string(), name)).collect::<Vec<_>>()
    };
    WORDS.iter().flat_map(of).collect()
}

#[test]
fn usual_mistakes_are_found() {
    let all = all();
    for (wrong, right) in [
        ("treads", "threads"),
        ("thread", "threads"),
        ("therads", "threads"),
        ("Threads", "threads"),
        ("THREADS", "threads"),
        ("num_threads", "threads"),
        ("devcie", "device"),
        ("divice", "device"),
        ("devices", "device"),
        ("kernal", "kernel"),
        ("treshold", "threshold"),
        ("treshhold", "threshold"),
        ("threshhold", "threshold"),
        ("thresold", "threshold"),
        ("verfiy", "verify"),
        ("varify", "verify"),
        ("verfyi", "verify"),
        ("callibrate", "calibrate"),
        ("a_head", "ahead"),
        ("lockstep.trace", "trace"),
        ("LOCKSTEP_TRACE", "trace"),
        ("trace_file", "trace"),
    ] {
        assert!(all.contains(&(wrong.into(), right)), "{wrong}");
    }
}

#[test]
fn valid_names_and_those_of_openssl_are_not_mistakes() {
    let of_openssl = [
        "activate",
        "module",
        "identity",
        "soft_load",
        "openssl-version",
        "provider-name",
        "module-filename",
    ];
    for (wrong, right) in all() {
        assert!(!NAMES.contains(&&*wrong) && !of_openssl.contains(&&*wrong), "{wrong} for {right}");
    }
    assert_eq!(WORDS.map(|(name, _)| name), NAMES);
}
