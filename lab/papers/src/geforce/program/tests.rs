use super::*;

#[test]
fn usage_is_interpolated_between_samples() {
    // Two processors in the first second, none in the second one.
    let run = Run::new(vec![(0.5, 1.0), (1.0, 2.0), (2.0, 2.0)]);
    assert_eq!((run.seconds, run.cpu_seconds), (2.0, 2.0));
    assert_eq!(run.usage(4), [2.0, 2.0, 0.0, 0.0]);
    assert_eq!(run.usage(1), [1.0]);
}

#[test]
fn the_name_of_a_program_may_contain_brackets_and_spaces() {
    let ticks = rustix::param::clock_ticks_per_second();
    let line = format!("7 (a) R 1 (b) Z 2 3 4 5 6 7 8 9 10 11 {} {ticks} 99 99", 2 * ticks);
    assert_eq!(process::state_and_time(&line), Some(('Z', 3.0)));
    assert_eq!(process::state_and_time("7 (a) Z 2 3"), None);
}

#[test]
fn programs_that_fail_or_print_messages_are_not_measured() {
    let shell = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        process::run("sh", command)
    };
    let run = shell("i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done").unwrap();
    assert!(run.seconds > 0.0 && run.cpu_seconds <= 2.0 * run.seconds + 0.02, "{run:?}");
    assert!(shell("exit 3").unwrap_err().to_string().contains("3"));
    let message = shell("echo 'lockstep: the CPU did it' >&2").unwrap_err().to_string();
    assert!(message.contains("the CPU did it"), "{message}");
    assert!(shell("echo '*** WARNING : deprecated' >&2").is_ok());
    // These messages do not fit into the buffer of a pipe. The program would wait for ever if nobody read them.
    let long = shell(
        "i=0; while [ $i -lt 4000 ]; do echo '*** WARNING : a line of sixty bytes, repeated 4000 times'; i=$((i + 1)); done >&2",
    );
    assert!(long.is_ok(), "{long:?}");
    let missing = process::run("none", Command::new("/no/such/program")).unwrap_err();
    assert!(missing.to_string().starts_with("none: "), "{missing}");
}

#[test]
fn a_wrong_ciphertext_is_found() {
    let folder = std::env::temp_dir().join(format!("lockstep-program-test-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = Removed(folder.join("file"));
    let (key, cpu) = (key().unwrap(), processor().unwrap());
    let file = File { bytes: 160, ..File::of(4) };
    write(&file, &path.0).unwrap();
    let mut data = std::fs::read(&path.0).unwrap();
    assert_eq!(data.len(), 160);
    data.extend([16; 16]);
    encrypt_by(&cpu, &key, Data::in_place(&mut data)).unwrap();
    let found = |data: &[u8]| {
        std::fs::write(&path.0, data).unwrap();
        check("openssl", &file, &path.0, &key, &cpu)
    };
    found(&data).unwrap();
    for wrong in [&data[..175], &[&data[..], &[0]].concat(), &[&[1], &data[1..]].concat()] {
        assert!(matches!(found(wrong), Err(Error::Wrong { file: 4, .. })));
    }
    drop(path);
    std::fs::remove_dir(&folder).unwrap();
}
