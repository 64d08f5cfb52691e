//! Tests of `calibrate`: the measurements of devices, the cache that stores them, and the explanation of the planner's choices.

use lockstep::hazmat::work::Operation;

use crate::common::*;

/// The number of measurements of a kernel that supports all operations: one for each operation and key size. POLYVAL has keys of
/// one size only.
const MEASUREMENTS: usize = 3 * Operation::COUNT - 2;

/// Returns the name of the only file in the cache. Panics if there are several files.
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

/// True if the choice that `devices` reports for GCM is based on measurements.
fn is_measured(folder: &Folder) -> bool {
    let report = run(folder, "devices --json").succeeded().json();
    let all = report["chosen"].as_array().unwrap();
    let seal = all.iter().find(|choice| choice["operation"] == "GcmSeal").unwrap();
    let sizes = seal["by_size"].as_array().unwrap();
    let is_measured = sizes[0]["measured"].as_bool().unwrap();
    assert!(sizes.iter().all(|size| size["measured"] == is_measured));
    // The tests measure only the kernel `cpu/soft`. It is chosen for every size, because the planner prefers kernels with
    // measurements to kernels without.
    assert!(!is_measured || sizes.iter().all(|size| size["kernel"] == "cpu/soft"));
    is_measured
}

#[test]
fn measurements_are_printed_stored_and_deleted() {
    let folder = Folder::new();
    // Mesa's drivers may store their own cache in the same folder.
    assert!(
        !is_measured(&folder) && !folder.has("cache/lockstep"),
        "nothing was measured, nothing was written"
    );
    let report = run(&folder, "calibrate --json --kernel cpu/soft").succeeded();
    assert_eq!(report.stderr, "");
    let report = report.json();
    let all = report["measured"].as_array().unwrap();
    assert_eq!(all.len(), MEASUREMENTS, "{all:?}");
    for one in all {
        assert_eq!((&one["device"], &one["memory"]), (&"cpu".into(), &"host".into()));
        let points = one["single_messages"].as_array().unwrap();
        assert!(points.len() >= 2 && points[0]["bytes"] == 64.0 && points[0]["ns"].as_f64().unwrap() > 0.0);
        assert!(one["bytes_per_second"].as_f64().unwrap() > 0.0);
        let is_fused = ["Seal", "Open"].iter().any(|end| one["operation"].as_str().unwrap().ends_with(end));
        assert!(!is_fused || one["ns_per_byte_of_many_messages"].as_f64().unwrap() > 0.0);
    }
    assert!(is_measured(&folder));
    let text = run(&folder, "calibrate --kernel cpu/soft").succeeded();
    assert!(text.text().contains("GCM decryption     cpu/soft\n"), "{}", text.text());

    run(&folder, "calibrate --forget").succeeded();
    assert!(!is_measured(&folder));
    run(&folder, "calibrate --forget").succeeded();
}

#[test]
fn a_damaged_or_foreign_cache_is_replaced() {
    let folder = Folder::new();
    run(&folder, "calibrate --kernel cpu/soft").succeeded();
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
    }
    run(&folder, "calibrate --kernel cpu/soft").succeeded();
    assert!(is_measured(&folder));
}

#[test]
fn a_cache_that_cannot_be_written_is_reported_by_calibrate_only() {
    let folder = Folder::with_keys();
    folder.write("cache", "a file where the folder should be");
    let report = run(&folder, "calibrate --json --kernel cpu/soft")
        .failed_as_json(2, "the measurements were not kept");
    assert_eq!(report.json()["measured"].as_array().unwrap().len(), MEASUREMENTS);
    let mut homeless = folder.command(["calibrate", "--json", "--kernel", "cpu/soft"]);
    let report: Ended = homeless.env_remove("XDG_CACHE_HOME").env_remove("HOME").output().unwrap().into();
    assert_eq!(
        report.failed_as_json(2, "set HOME or XDG_CACHE_HOME").json()["measured"].as_array().unwrap().len(),
        MEASUREMENTS
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
    let report = run(&folder, "encrypt -k key -o cipher -f --explain plain").succeeded().stderr;
    assert!(report.starts_with("lockstep: GCM encryption, AES-256, "), "{report}");
    assert!(report.contains("->") && report.contains(" on cpu, estimated"), "{report}");
    let report = run(&folder, "decrypt -k key -o back --explain cipher").succeeded().stderr;
    assert!(report.contains("GCM decryption, AES-256, "), "{report}");
    folder.write("raw", [7; 16]);
    let args = "cipher --mode ctr --key-file raw --iv-hex 00000000000000000000000000000000 -o out --kernel cpu/soft --explain plain";
    let report = run(&folder, args).succeeded().stderr;
    assert!(report.contains("CTR, AES-128, ") && report.contains("cpu/soft on cpu"), "{report}");
    assert!(!report.contains("cpu/aesni"), "only what may be chosen: {report}");
}
