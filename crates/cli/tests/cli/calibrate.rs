//! What is measured of devices, where it is kept, and what the command tells of its choices.

use crate::common::*;

/// The name of the only file in the cache.
fn only_file(folder: &Folder) -> String {
    let entries = std::fs::read_dir(folder.path("cache/lockstep/calibration")).unwrap();
    let names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names.len(), 1, "{names:?}");
    format!("cache/lockstep/calibration/{}", names[0])
}

fn run(folder: &Folder, args: &str) -> Ended {
    let mut command = folder.command(args.split(' '));
    command.env("XDG_CACHE_HOME", folder.path("cache"));
    command.output().unwrap().into()
}

/// True if what `devices` tells of GCM rests on measurements.
fn is_measured(folder: &Folder) -> bool {
    let told = run(folder, "devices --json").succeeded().json();
    let all = told["chosen"].as_array().unwrap();
    let seal = all.iter().find(|choice| choice["operation"] == "GcmSeal").unwrap();
    let sizes = seal["by_size"].as_array().unwrap();
    assert!(
        sizes.iter().all(|size| size["measured"] == sizes[0]["measured"] && size["kernel"] == "cpu/aws-lc")
    );
    sizes[0]["measured"].as_bool().unwrap()
}

#[test]
fn measurements_are_told_and_kept_and_forgotten() {
    let folder = Folder::new();
    // Mesa's drivers may keep a cache of their own beside ours.
    assert!(
        !is_measured(&folder) && !folder.has("cache/lockstep"),
        "nothing was measured, nothing was written"
    );
    // The kernel with the fewest operations.
    let told = run(&folder, "calibrate --json --kernel cpu/aws-lc").succeeded();
    assert_eq!(told.stderr, "");
    let told = told.json();
    let all = told["measured"].as_array().unwrap();
    assert_eq!(all.len(), 6, "two operations, three key sizes: {all:?}");
    for one in all {
        assert_eq!((&one["device"], &one["memory"]), (&"cpu".into(), &"host".into()));
        let points = one["single_messages"].as_array().unwrap();
        assert!(points.len() >= 2 && points[0]["bytes"] == 64.0 && points[0]["ns"].as_f64().unwrap() > 0.0);
        assert!(one["bytes_per_second"].as_f64().unwrap() > 1e6);
        assert!(one["ns_per_byte_of_many_messages"].as_f64().unwrap() > 0.0);
    }
    assert!(is_measured(&folder));
    let text = run(&folder, "calibrate --kernel cpu/aws-lc").succeeded();
    assert!(text.text().contains("GcmOpen         cpu/aws-lc\n"), "{}", text.text());

    run(&folder, "calibrate --forget").succeeded();
    assert!(!is_measured(&folder));
    run(&folder, "calibrate --forget").succeeded();
}

#[test]
fn a_damaged_or_foreign_cache_is_written_anew() {
    let folder = Folder::new();
    run(&folder, "calibrate --kernel cpu/aws-lc").succeeded();
    let file = only_file(&folder);
    let good = String::from_utf8(folder.read(&file)).unwrap();
    for bad in [
        "",
        "nonsense\n",
        &good[..good.len() / 2],
        &good.replace("host", "hose"),
        &good.replace("cpu |", "gpu |"),
    ] {
        folder.write(&file, bad);
        assert!(!is_measured(&folder), "{bad}");
        run(&folder, "calibrate --kernel cpu/aws-lc").succeeded();
        assert!(is_measured(&folder));
    }
}

#[test]
fn a_cache_that_cannot_be_written_to_is_reported_by_calibrate_and_does_no_harm_elsewhere() {
    let folder = Folder::with_keys();
    folder.write("cache", "a file where the folder should be");
    let told = run(&folder, "calibrate --json --kernel cpu/aws-lc")
        .failed_as_json(2, "the measurements were not kept");
    assert_eq!(told.json()["measured"].as_array().unwrap().len(), 6);
    let mut homeless = folder.command(["calibrate", "--json", "--kernel", "cpu/aws-lc"]);
    let told: Ended = homeless.env_remove("XDG_CACHE_HOME").env_remove("HOME").output().unwrap().into();
    assert_eq!(
        told.failed_as_json(2, "set HOME or XDG_CACHE_HOME").json()["measured"].as_array().unwrap().len(),
        6
    );
    folder.write("plain", data(100_000));
    run(&folder, "encrypt -k key -o cipher plain").succeeded();
    assert_eq!(folder.read("cache"), b"a file where the folder should be");
}

#[test]
fn choices_are_explained() {
    let folder = Folder::with_keys();
    folder.write("plain", data(3_000_000));
    let silent = run(&folder, "encrypt -k key -o cipher plain").succeeded();
    assert_eq!(silent.stderr, "");
    let told = run(&folder, "encrypt -k key -o cipher -f --explain plain").succeeded().stderr;
    assert!(told.starts_with("lockstep: GcmSeal, AES-256, "), "{told}");
    assert!(told.contains("->") && told.contains("cpu/aws-lc on cpu, as the device states"), "{told}");
    let told = run(&folder, "decrypt -k key -o back --explain cipher").succeeded().stderr;
    assert!(told.contains("GcmOpen, AES-256, "), "{told}");
    folder.write("raw", [7; 16]);
    let args = "cipher --mode ctr --key-file raw --iv-hex 00000000000000000000000000000000 -o out --kernel cpu/soft --explain plain";
    let told = run(&folder, args).succeeded().stderr;
    assert!(told.contains("Ctr, AES-128, ") && told.contains("cpu/soft on cpu"), "{told}");
    assert!(!told.contains("cpu/aesni"), "only what may be chosen: {told}");
}
