//! `lockstep bench`: that every suite measures what it says, and how it is told. No figure is judged.

use std::path::Path;

use serde_json::Value;

use crate::common::*;

/// A quick run's part of a suite.
fn quick(folder: &Folder, suite: &str, more: &[&str]) -> Value {
    let told =
        folder.run([&["bench", suite, "--quick", "--json", "--dir", "."][..], more].concat()).succeeded();
    assert!(!told.stderr.contains("lockstep: "), "{}", told.stderr);
    told.json()
}

fn results<'j>(told: &'j Value, suite: &str) -> &'j Vec<Value> {
    told["suites"][suite]["results"].as_array().unwrap()
}

/// The names in `bytes_per_second`, all of which must have been measured.
#[track_caller]
fn measured(result: &Value) -> Vec<String> {
    let by = result["bytes_per_second"].as_object().unwrap();
    for (name, rate) in by {
        let [least, median, most] = ["min", "median", "max"].map(|which| rate[which].as_f64().unwrap());
        assert!(0.0 < least && least <= median && median <= most, "{name}: {rate}");
    }
    by.keys().cloned().collect()
}

#[test]
fn peers_are_the_default() {
    let folder = Folder::new();
    let told = folder.run(["bench", "--quick", "--json"]).succeeded().json();
    for field in ["version", "date", "command", "machine", "devices", "openssl", "energy", "cpu_use"] {
        assert!(!told[field].is_null(), "{field}");
    }
    assert_eq!(told["command"], "lockstep bench --quick --json");
    assert!(told["machine"]["processors"].as_u64().unwrap() > 0);
    assert_eq!(told["suites"].as_object().unwrap().keys().collect::<Vec<_>>(), ["peers"]);
    let ctr = &results(&told, "peers")[0];
    assert_eq!((&ctr["work"], &ctr["size"]), (&"ctr-128".into(), &1024.into()));
    assert_eq!(measured(ctr), ["aws-lc", "lockstep", "rustcrypto"]);
    let ours = &ctr["bytes_per_second"]["lockstep"];
    assert!(ours["cpu_seconds_per_gb"].as_f64().unwrap() > 0.0);
    assert!(ours["first_call_seconds"].as_f64().unwrap() > 0.0);
    assert!(ctr["ratio_to_aws_lc"].is_number() && ctr["ratio_to_openssl"].is_null());
    // As it was used before there were suites.
    let args = ["bench", "--mode", "gcm-128-keys", "--size", "16", "--rounds", "1", "--seconds", "0.001"];
    let told =
        folder.run([&args[..], &["--no-openssl", "--threads", "1", "--json"]].concat()).succeeded().json();
    let result = &results(&told, "peers")[0];
    assert_eq!((&result["work"], &result["messages"]), (&"gcm-128-keys".into(), &10_000.into()));
    let text = folder.run(["bench", "--quick", "-m", "ctr-128"]).succeeded();
    assert!(
        text.text().contains("Beside the peers") && text.text().contains("rustcrypto"),
        "{}",
        text.text()
    );
    assert!(
        !text.stderr.contains("lockstep: ") && text.text().lines().all(|line| line.chars().count() <= 120)
    );
}

#[test]
fn openssl_takes_part() {
    if !have("openssl") {
        return;
    }
    let folder = Folder::new();
    let told = quick(&folder, "peers", &["--openssl", "openssl", "--rounds", "1", "-m", "ctr-128"]);
    let names = measured(&results(&told, "peers")[0]);
    assert!(names.iter().any(|name| name.starts_with("OpenSSL ")), "{names:?}");
    assert!(results(&told, "peers")[0]["ratio_to_openssl"].is_number());
    // What is not the same for all is told where it counts.
    let keyed =
        |told: &Value| told["suites"]["peers"]["findings"].to_string().contains("sets key and IV anew");
    assert!(!keyed(&told));
    let gcm = ["--openssl", "openssl", "--rounds", "1", "-m", "gcm-192-open"];
    assert!(keyed(&quick(&folder, "peers", &gcm)));
    let told = quick(&folder, "files", &["--openssl", "openssl"]);
    let of = |name: &str| {
        results(&told, "files").iter().find(|one| one["who"].as_str().unwrap().contains(name)).cloned()
    };
    assert_eq!(of("OpenSSL").unwrap()["verified"], true);
    folder.run(["bench", "--quick", "--openssl", "true"]).failed(2, "'true' is no `openssl` program");
    let mut command = folder.command(["bench", "--rounds", "1", "-m", "gcm-128-keys", "-s", "16"]);
    let ended = Ended::from(command.env("OPENSSL_NEWEST", "/nonexistent").output().unwrap());
    ended.failed(2, "'/nonexistent' is no `openssl` program");
}

#[test]
fn kernels_and_devices_are_measured() {
    let folder = Folder::new();
    let told = quick(&folder, "throughput", &[]);
    let names = measured(&results(&told, "throughput")[0]);
    assert!(names.contains(&"cpu/soft".to_owned()), "{names:?}");
    let told = quick(&folder, "throughput", &["--kernel", "cpu/soft", "-m", "cbc-192", "-s", "4K"]);
    let all = results(&told, "throughput");
    let works: Vec<_> = all.iter().map(|result| result["work"].as_str().unwrap()).collect();
    assert_eq!(works, ["cbc-192", "cbc-192-decrypt"]);
    assert_eq!(measured(&all[0]), ["cpu/soft on cpu"]);

    // Simulated devices by name only, beside others.
    let devices = ["--device", "cpu", "--device", "spu", "--verify", "off", "-s", "256", "-s", "1K"];
    let told = quick(&folder, "crossover", &devices);
    let sizes = results(&told, "crossover")[0]["sizes"].as_array().unwrap();
    assert_eq!(sizes.len(), 2);
    assert_eq!(measured(&sizes[1]), ["cpu", "spu"]);
    let findings = told["suites"]["crossover"]["findings"].to_string();
    assert!(findings.contains("cpu is the fastest device from 256 B to 1 KiB"), "{findings}");
    let told = quick(&folder, "crossover", &[]);
    let findings = told["suites"]["crossover"]["findings"].to_string();
    assert!(findings.contains("3 % behind") && !findings.contains("spu"), "{findings}");

    let told = quick(&folder, "batch", &["-s", "48", "--messages", "3", "-m", "xts-128"]);
    let batch = &results(&told, "batch")[0];
    assert_eq!((&batch["size"], &batch["messages"]), (&48.into(), &3.into()));
    assert!(measured(batch).contains(&"cpu".to_owned()));
}

#[test]
fn small_calls_and_patterns() {
    let folder = Folder::new();
    let told = quick(&folder, "latency", &["-s", "16"]);
    for result in results(&told, "latency") {
        let times = ["min", "median", "p90", "p99", "p999", "max"];
        let times = times.map(|which| result["seconds"][which].as_f64().unwrap());
        assert!(times[0] > 0.0 && times.is_sorted() && result["calls"].as_u64().unwrap() > 0, "{result}");
    }
    let told = quick(&folder, "patterns", &["--kernel", "cpu/soft", "-s", "1K"]);
    let result = &results(&told, "patterns")[0];
    assert_eq!(measured(result), ["counting", "increasing", "one byte", "random"]);
    assert!(result["difference"].is_number() && result["inside_spread"].is_boolean());
    let blind = ["bench", "patterns", "--quick", "-m", "xts-128", "-m", "ctr-128"];
    folder.run(blind).failed(2, "patterns of data say nothing about xts-128, xts-128-decrypt, ctr-128");
    let told =
        quick(&folder, "patterns", &["--kernel", "cpu/soft", "-s", "1K", "-m", "ecb-128", "-m", "ofb-128"]);
    assert!(told["suites"]["patterns"]["findings"].to_string().contains("Left out: ofb-128"), "{told}");
}

#[test]
fn files_are_written_and_removed() {
    let folder = Folder::new();
    let told = quick(&folder, "files", &[]);
    let all = results(&told, "files");
    let of =
        |name: &str| all.iter().find(|one| one["who"] == name).unwrap_or_else(|| panic!("{name}: {told}"));
    for name in ["encrypt", "decrypt", "cp"] {
        assert_eq!(of(name)["verified"], true, "{name}");
        assert!(of(name)["seconds"]["median"].as_f64().unwrap() > 0.0);
    }
    assert_eq!(of("encrypt to /dev/null")["verified"], false);
    assert!(folder.names().is_empty(), "{:?}", folder.names());
    folder.run(["bench", "files", "--quick", "--dir", "nowhere"]).failed(2, "nowhere");
    // A program that was stopped leaves nothing either.
    let child =
        folder.spawn(["bench", "files", "--no-openssl", "-s", "1M", "--rounds", "60000", "--dir", "."]);
    wait_until("a folder", || folder.names().iter().any(|name| name.starts_with("lockstep-bench-")));
    kill("-INT", &child);
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(ended.code, 130, "{}", ended.stderr);
    assert!(folder.names().is_empty(), "{:?}", folder.names());
}

/// What was found before a signal is told; by an exit code that says that it is not all.
#[test]
fn a_signal_ends_one_suite_and_loses_no_other() {
    let folder = Folder::new();
    let suites = ["bench", "latency", "files", "patterns", "--device", "cpu", "-m", "ecb-128", "-s", "4K"];
    let long = ["--rounds", "300", "--seconds", "0.00001", "--no-openssl", "--dir", "."];
    let child = folder.spawn([&suites[..], &long, &["--json", "--html", "page.html"]].concat());
    wait_until("a folder", || folder.names().iter().any(|name| name.starts_with("lockstep-bench-")));
    kill("-TERM", &child);
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(ended.code, 143, "{}", ended.stderr);
    let told = ended.json();
    assert!(!results(&told, "latency").is_empty());
    assert_eq!(told["suites"]["files"]["error"], "stopped by a signal");
    assert!(told["suites"]["patterns"].is_null());
    assert_eq!(folder.names(), ["page.html"]);
    // It is waited for, until somebody presses again: here for the reader of a pipe.
    fifo(&folder.path("fifo"));
    let table = std::fs::File::create(folder.path("table")).unwrap();
    let quick = ["bench", "latency", "--quick", "--device", "cpu", "-s", "16", "--html", "fifo"];
    let mut child = folder.command(quick).stdout(table).spawn().unwrap();
    wait_until("the table", || !folder.read("table").is_empty());
    for pause in [50, 5500] {
        // The second comes too soon to be another wish.
        kill("-TERM", &child);
        std::thread::sleep(std::time::Duration::from_millis(pause));
        assert!(child.try_wait().unwrap().is_none(), "after {pause} ms");
    }
    kill("-TERM", &child);
    assert_eq!(child.wait().unwrap().code(), Some(143));
    ["fifo", "table"].iter().for_each(|name| std::fs::remove_file(folder.path(name)).unwrap());
    // With nothing found there is nothing to tell.
    let child =
        folder.spawn([&["bench", "throughput", "--rounds", "60000"][..], &["--html", "no.html"]].concat());
    wait_for_handlers(&child);
    kill("-INT", &child);
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert!(ended.code == 130 && ended.stdout.is_empty(), "{}", ended.stderr);
    assert_eq!(folder.names(), ["page.html"]);
}

#[test]
fn the_page() {
    let folder = Folder::new();
    let run = |more: &[&str]| folder.run([&["bench", "crossover", "--quick"][..], more].concat());
    let told = run(&["--html", "page.html", "--json"]).succeeded().json();
    assert!(told["suites"]["crossover"].is_object());
    let page = String::from_utf8(folder.read("page.html")).unwrap();
    for words in
        ["<svg", "prefers-color-scheme", "id=\"crossover\"", "lockstep bench crossover --quick", "CPU use"]
    {
        assert!(page.contains(words), "{words}");
    }
    // Nothing is loaded from anywhere: the one address is the name of SVG's language.
    assert_eq!(page.matches("://").count(), page.matches("http://www.w3.org/2000/svg").count());
    assert!(!page.contains("<script") && !page.contains("src="));
    assert_eq!(folder.names(), ["page.html"]);

    run(&["--html", "page.html"])
        .failed(2, "'page.html' exists: choose another output, or replace it with --force");
    assert!(folder.read("page.html") == page.as_bytes());
    run(&["--html", "page.html", "--force"]).succeeded();
    assert!(folder.read("page.html") != page.as_bytes());
    let ended = run(&["--html", "nowhere/page.html"]).failed(2, "nowhere/page.html");
    // It is found out before anything is measured.
    assert!(ended.stdout.is_empty());
    run(&["--html", "."]).failed(2, ".");
    run(&["--force"]).failed_usage("--html");
    // What failed leaves no page.
    run(&["--html", "new.html", "--device", "abacus"]).failed(2, "abacus");
    assert_eq!(folder.names(), ["page.html"]);
    let script = "lockstep bench --quick --html piped.html | head -c 0; exit ${PIPESTATUS[0]}";
    folder.shell(script).succeeded();
    assert!(folder.has("piped.html"));
    // Nor does the page go where there is no room for the table.
    if Path::new("/dev/full").exists() {
        let script = "lockstep bench --quick --html full.html > /dev/full";
        folder.shell(script).failed(2, "No space left");
        assert!(folder.has("full.html"));
    }
    // A pipe is opened once, when there is something to read.
    fifo(&folder.path("pipe"));
    let script =
        "timeout 100 lockstep bench --quick --html pipe > table & timeout 100 cat pipe > read; wait $!";
    folder.shell(script).succeeded();
    assert!(folder.read("read").starts_with(b"<!DOCTYPE html>"));
}

/// What fails does not take with it what was measured, before it or after.
#[test]
fn a_suite_that_fails_does_not_end_the_others() {
    let folder = Folder::new();
    let suites = ["bench", "latency", "files", "patterns", "--quick", "--dir", "nowhere", "-s", "1K"];
    let ended = folder.run([&suites[..], &["--json", "--html", "page.html"]].concat());
    let ended =
        ended.failed_as_json(2, "not everything was measured: files: cannot make a folder in nowhere");
    let told = ended.json();
    assert!(!results(&told, "latency").is_empty() && !results(&told, "patterns").is_empty());
    assert!(results(&told, "files").is_empty());
    assert!(told["suites"]["files"]["error"].as_str().unwrap().contains("nowhere"), "{told}");
    let page = String::from_utf8(folder.read("page.html")).unwrap();
    assert!(page.contains("This suite failed") && page.contains("id=\"patterns\""));
    // Where all fail there is nothing to tell but why.
    let ended = folder.run(["bench", "latency", "batch", "--quick", "--device", "abacus"]);
    assert!(ended.failed(2, "abacus").stdout.is_empty());
}

#[test]
fn bad_wishes() {
    let folder = Folder::new();
    let run = |more: &[&str]| folder.run([&["bench", "--quick"][..], more].concat());
    run(&["abacus"]).failed_usage(
        "[possible values: throughput, crossover, batch, files, latency, peers, patterns, all]",
    );
    run(&["-m", "abacus"]).failed(2, "nothing of that name to measure: there are ctr-128");
    run(&["throughput", "-m", "abacus"]).failed(2, "nothing of that name to measure: there are ecb-128");
    for size in ["0", "17", "2G"] {
        run(&["-s", size]).failed(2, "sizes are multiples of 16, up to 1 GiB");
    }
    run(&["batch", "-s", "1M", "--messages", "4096"]).failed(2, "more than 1 GiB");
    run(&["-s", "32M", "-m", "xts"]).failed(2, "none of this work at these sizes");
    // Of a work with many messages a call is bounded, too.
    run(&["-m", "cbc-128-x64", "-s", "1G"]).failed(2, "cbc-128-x64 at 1024 MiB was left out: 64 messages");
    let told = quick(&folder, "peers", &["-m", "cbc-128-x64", "-s", "1K", "-s", "32M"]);
    assert_eq!(results(&told, "peers").len(), 1);
    let findings = told["suites"]["peers"]["findings"].to_string();
    assert!(findings.contains("cbc-128-x64 at 32 MiB was left out"), "{findings}");
    // Nobody is faster than nobody.
    assert!(
        !findings.contains("No peer") && findings.contains("1 of 1 measurements had no peer"),
        "{findings}"
    );
    run(&["throughput", "--device", "cpu", "--kernel", "spu/ctr4"]).failed(2, "kernel");
    // Not even a second one is passed over.
    let soft = ["throughput", "-m", "ctr-128", "--kernel", "cpu/soft"];
    run(&[&soft[..], &["--kernel", "abacus/ctr"]].concat()).failed(2, "abacus");
    run(&[&soft[..], &["--device", "cpu", "--kernel", "spu/ctr4"]].concat())
        .failed(2, "kernels like spu/ctr4");
    let kernels = ["-m", "ctr-128", "--device", "cpu", "--kernel", "cpu/soft", "--kernel", "cpu/abacus"];
    let findings = quick(&folder, "peers", &kernels)["suites"]["peers"]["findings"].to_string();
    assert!(findings.contains("measures cpu/soft only, not cpu/abacus"), "{findings}");
    run(&["throughput", "--kernel", "cpu/abacus"]).failed(2, "cpu/abacus");
    run(&["latency", "--device", "abacus"]).failed(2, "abacus");
    run(&["--threads", "0"]).failed(2, "threads");
    run(&["--seconds", "0"]).failed_usage("more than 0");
    run(&["--rounds", "0"]).failed_usage("--rounds");
    run(&["--openssl", "openssl", "--no-openssl"]).failed_usage("--no-openssl");
    let mut command = folder.command(["bench", "latency", "--quick"]);
    Ended::from(command.env("LOCKSTEP_DEVICE", "abacus").output().unwrap()).failed(2, "abacus");
}
