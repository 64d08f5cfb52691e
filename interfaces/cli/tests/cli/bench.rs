//! `lockstep bench`: every suite measures, and the reports contain the results. The values of the results are not checked.

use std::path::Path;

use serde_json::Value;

use crate::common::*;

/// Runs a suite with `--quick`, and returns its report.
fn quick(folder: &Folder, suite: &str, more: &[&str]) -> Value {
    let report = folder.run([&["bench", suite, "--quick", "--json"][..], more].concat()).succeeded();
    assert!(!report.stderr.contains("lockstep: "), "{}", report.stderr);
    report.json()
}

fn results<'j>(report: &'j Value, suite: &str) -> &'j Vec<Value> {
    report["suites"][suite]["results"].as_array().unwrap()
}

/// Returns the names in `bytes_per_second`. Panics if one of them has no rate.
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
    let report = folder.run(["bench", "--quick", "--json"]).succeeded().json();
    for field in ["version", "date", "command", "machine", "devices", "openssl"] {
        assert!(!report[field].is_null(), "{field}");
    }
    assert_eq!(report["command"], "lockstep bench --quick --json");
    assert!(report["machine"]["processors"].as_u64().unwrap() > 0);
    assert_eq!(report["suites"].as_object().unwrap().keys().collect::<Vec<_>>(), ["peers"]);
    let ctr = &results(&report, "peers")[0];
    assert_eq!((&ctr["work"], &ctr["size"]), (&"ctr-128".into(), &1024.into()));
    let limit = cfg!(target_arch = "x86_64").then_some("limit");
    let names: Vec<_> = ["aws-lc"].into_iter().chain(limit).chain(["lockstep", "rustcrypto"]).collect();
    assert_eq!(measured(ctr), names);
    assert_eq!(ctr["ratio_to_limit"].is_number(), limit.is_some());
    let ours = &ctr["bytes_per_second"]["lockstep"];
    assert!(ours["cpu_seconds_per_gb"].as_f64().unwrap() > 0.0);
    assert!(ours["first_call_seconds"].as_f64().unwrap() > 0.0);
    assert!(ctr["ratio_to_aws_lc"].is_number() && ctr["ratio_to_openssl"].is_null());
    // Without the name of a suite, as in an older syntax, `bench` measures the peers.
    let args = ["bench", "--mode", "gcm-128-keys", "--size=16", "--rounds", "1", "--seconds", "0.001"];
    let report =
        folder.run([&args[..], &["--no-openssl", "--threads", "1", "--json"]].concat()).succeeded().json();
    // A word with `=` is quoted.
    let command = report["command"].as_str().unwrap();
    assert!(command.starts_with("lockstep bench --mode gcm-128-keys '--size=16' --rounds 1 "), "{command}");
    let result = &results(&report, "peers")[0];
    assert_eq!((&result["work"], &result["messages"]), (&"gcm-128-keys".into(), &10_000.into()));
    assert!(result["ratio_to_limit"].is_null());
    let text = folder.run(["bench", "--quick", "-m", "ctr-128"]).succeeded();
    assert!(
        text.text().contains("Comparison with the peers") && text.text().contains("rustcrypto"),
        "{}",
        text.text()
    );
    assert!(
        !text.stderr.contains("lockstep: ") && text.text().lines().all(|line| line.chars().count() <= 120)
    );
}

#[test]
fn openssl_is_measured() {
    if !have("openssl") {
        return;
    }
    let folder = Folder::new();
    let report = quick(&folder, "peers", &["--openssl", "openssl", "--rounds", "1", "-m", "ctr-128"]);
    let names = measured(&results(&report, "peers")[0]);
    assert!(names.iter().any(|name| name.starts_with("OpenSSL ")), "{names:?}");
    assert!(results(&report, "peers")[0]["ratio_to_openssl"].is_number());
    // Differences between the contenders are reported in the findings.
    let keyed =
        |report: &Value| report["suites"]["peers"]["findings"].to_string().contains("sets key and IV anew");
    assert!(!keyed(&report));
    let gcm = ["--openssl", "openssl", "--rounds", "1", "-m", "gcm-192-open"];
    assert!(keyed(&quick(&folder, "peers", &gcm)));
    folder.run(["bench", "--quick", "--openssl", "true"]).failed(2, "'true' is not an `openssl` program");
    let mut command = folder.command(["bench", "--rounds", "1", "-m", "gcm-128-keys", "-s", "16"]);
    let ended = Ended::from(command.env("OPENSSL_NEWEST", "/nonexistent").output().unwrap());
    ended.failed(2, "'/nonexistent' is not an `openssl` program");
}

#[test]
fn kernels_and_devices_are_measured() {
    let folder = Folder::new();
    let report = quick(&folder, "throughput", &[]);
    let names = measured(&results(&report, "throughput")[0]);
    assert!(names.contains(&"cpu/soft".to_owned()), "{names:?}");
    let report = quick(&folder, "throughput", &["--kernel", "cpu/soft", "-m", "cbc-192", "-s", "4K"]);
    let all = results(&report, "throughput");
    let works: Vec<_> = all.iter().map(|result| result["work"].as_str().unwrap()).collect();
    assert_eq!(works, ["cbc-192", "cbc-192-decrypt"]);
    assert_eq!(measured(&all[0]), ["cpu/soft on cpu"]);
    // The contender `limit` exists only for one thread, and not in serial modes.
    for (threads, with_limit) in [("1", cfg!(target_arch = "x86_64")), ("2", false)] {
        let args = ["-m", "cbc-128", "-s", "4K", "--kernel", "cpu/soft", "--threads", threads];
        let report = quick(&folder, "throughput", &args);
        let has_limit = |result: &Value| {
            let is_measured = measured(result).contains(&"limit".to_owned());
            assert_eq!(result["ratio_to_limit"].is_number(), is_measured);
            is_measured
        };
        assert_eq!(
            results(&report, "throughput").iter().map(has_limit).collect::<Vec<_>>(),
            [false, with_limit]
        );
        let findings = report["suites"]["throughput"]["findings"].to_string();
        assert_eq!(
            findings.contains("cbc-128-decrypt: the fastest kernel, divided by the limit: "),
            with_limit
        );
    }

    let report = quick(&folder, "crossover", &[]);
    let findings = report["suites"]["crossover"]["findings"].to_string();
    assert!(findings.contains("3 % behind"), "{findings}");

    let report = quick(&folder, "batch", &["-s", "48", "--messages", "3", "-m", "xts-128"]);
    let batch = &results(&report, "batch")[0];
    assert_eq!((&batch["size"], &batch["messages"]), (&48.into(), &3.into()));
    assert!(measured(batch).contains(&"cpu".to_owned()));
}

#[test]
fn small_calls() {
    let folder = Folder::new();
    let report = quick(&folder, "latency", &["-s", "16"]);
    for result in results(&report, "latency") {
        let times = ["min", "median", "p90", "p99", "p999", "max"];
        let times = times.map(|which| result["seconds"][which].as_f64().unwrap());
        assert!(times[0] > 0.0 && times.is_sorted() && result["calls"].as_u64().unwrap() > 0, "{result}");
    }
}

/// After a signal, the results of the suites before the signal are printed. The exit code shows that they are incomplete.
#[test]
fn a_signal_ends_one_suite_and_keeps_the_results_of_others() {
    let folder = Folder::new();
    // The suite `peers` waits for this program when the signal comes.
    let program = "#!/bin/sh\n[ $1 = version ] && exec echo Waiting 1.0\n\
        touch started; until [ -e go ]; do sleep 0.01; done; echo +F:1:AES-128-ECB:1000\n";
    folder.write("waiting", program);
    folder.shell("chmod +x waiting").succeeded();
    let suites = ["bench", "latency", "peers", "crossover", "--device", "cpu", "-m", "ecb-128", "-s", "4K"];
    let short = ["--rounds", "1", "--seconds", "0.00001", "--openssl", "./waiting"];
    let child = folder.spawn([&suites[..], &short, &["--json", "--html", "page.html"]].concat());
    wait_until("the suite `peers`", || folder.has("started"));
    kill("-TERM", &child);
    // No file shows that the thread for signals has run. If it has not after this time, the test fails.
    std::thread::sleep(std::time::Duration::from_millis(1000));
    folder.write("go", "");
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(ended.code, 143, "{}", ended.stderr);
    let report = ended.json();
    assert!(!results(&report, "latency").is_empty());
    assert_eq!(report["suites"]["peers"]["error"], "stopped by a signal");
    assert!(report["suites"]["crossover"].is_null());
    ["waiting", "started", "go"].iter().for_each(|name| std::fs::remove_file(folder.path(name)).unwrap());
    assert_eq!(folder.names(), ["page.html"]);
    // The page is written to a pipe that is not read. Writing waits until a second signal ends the program.
    fifo(&folder.path("fifo"));
    let table = std::fs::File::create(folder.path("table")).unwrap();
    let quick = ["bench", "latency", "--quick", "--device", "cpu", "-s", "16", "--html", "fifo"];
    let mut child = folder.command(quick).stdout(table).spawn().unwrap();
    wait_until("the table", || !folder.read("table").is_empty());
    for pause in [50, 5500] {
        // A signal that arrives soon after the first one is ignored.
        kill("-TERM", &child);
        std::thread::sleep(std::time::Duration::from_millis(pause));
        assert!(child.try_wait().unwrap().is_none(), "after {pause} ms");
    }
    kill("-TERM", &child);
    assert_eq!(child.wait().unwrap().code(), Some(143));
    ["fifo", "table"].iter().for_each(|name| std::fs::remove_file(folder.path(name)).unwrap());
    // If there are no results yet, nothing is printed.
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
    let report = run(&["--html", "page.html", "--json"]).succeeded().json();
    assert!(report["suites"]["crossover"].is_object());
    let page = String::from_utf8(folder.read("page.html")).unwrap();
    for words in ["<svg", "prefers-color-scheme", "id=\"crossover\"", "lockstep bench crossover --quick"] {
        assert!(page.contains(words), "{words}");
    }
    // The page loads no resources: the only address is the namespace of SVG.
    assert_eq!(page.matches("://").count(), page.matches("http://www.w3.org/2000/svg").count());
    assert!(!page.contains("<script") && !page.contains("src="));
    assert_eq!(folder.names(), ["page.html"]);

    run(&["--html", "page.html"])
        .failed(2, "'page.html' exists: choose another output, or replace it with --force");
    assert!(folder.read("page.html") == page.as_bytes());
    run(&["--html", "page.html", "--force"]).succeeded();
    assert!(folder.read("page.html") != page.as_bytes());
    let ended = run(&["--html", "nowhere/page.html"]).failed(2, "nowhere/page.html");
    // The error is reported before the measurement.
    assert!(ended.stdout.is_empty());
    run(&["--html", "."]).failed(2, ".");
    run(&["--force"]).failed_usage("--html");
    // A failed run creates no page.
    run(&["--html", "new.html", "--device", "abacus"]).failed(2, "abacus");
    assert_eq!(folder.names(), ["page.html"]);
    let script = "lockstep bench --quick --html piped.html | head -c 0; exit ${PIPESTATUS[0]}";
    folder.shell(script).succeeded();
    assert!(folder.has("piped.html"));
    // If the table cannot be written, no page is written.
    if Path::new("/dev/full").exists() {
        let script = "lockstep bench --quick --html full.html > /dev/full";
        folder.shell(script).failed(2, "No space left");
        assert!(folder.has("full.html"));
    }
    // A pipe is opened once, when there is data to write.
    fifo(&folder.path("pipe"));
    let script =
        "timeout 100 lockstep bench --quick --html pipe > table & timeout 100 cat pipe > read; wait $!";
    folder.shell(script).succeeded();
    assert!(folder.read("read").starts_with(b"<!DOCTYPE html>"));
}

/// A suite that fails does not affect the results of the others.
#[test]
fn a_suite_that_fails_does_not_end_the_others() {
    let folder = Folder::new();
    // Only the suite `peers` has this workload.
    let suites = ["bench", "latency", "peers", "batch", "--quick", "-m", "gcm-128-keys", "-s", "1K"];
    let ended = folder.run([&suites[..], &["--json", "--html", "page.html"]].concat());
    let ended = ended.failed_as_json(2, "not everything was measured: latency: no such name to measure");
    let report = ended.json();
    assert!(!results(&report, "peers").is_empty() && results(&report, "latency").is_empty());
    for suite in ["latency", "batch"] {
        let error = report["suites"][suite]["error"].as_str().unwrap();
        assert!(error.contains("no such name to measure"), "{report}");
    }
    let page = String::from_utf8(folder.read("page.html")).unwrap();
    assert!(page.contains("This suite failed") && page.contains("id=\"peers\""));
    // If all suites fail, only the errors are reported.
    let ended = folder.run(["bench", "latency", "batch", "--quick", "--device", "abacus"]);
    assert!(ended.failed(2, "abacus").stdout.is_empty());
}

#[test]
fn bad_arguments() {
    let folder = Folder::new();
    let run = |more: &[&str]| folder.run([&["bench", "--quick"][..], more].concat());
    run(&["abacus"]).failed_usage("[possible values: throughput, crossover, batch, latency, peers, all]");
    run(&["-m", "abacus"]).failed(2, "no such name to measure: there are ctr-128");
    run(&["throughput", "-m", "abacus"]).failed(2, "no such name to measure: there are ecb-128");
    for size in ["0", "17", "2G"] {
        run(&["-s", size]).failed(2, "sizes are multiples of 16, up to 1 GiB");
    }
    run(&["batch", "-s", "1M", "--messages", "4096"]).failed(2, "more than 1 GiB");
    run(&["-s", "32M", "-m", "xts"]).failed(2, "none of these workloads at these sizes");
    // The limit of the bytes of a call also applies to workloads with many messages.
    run(&["-m", "cbc-128-x64", "-s", "1G"]).failed(2, "cbc-128-x64 at 1024 MiB was left out: 64 messages");
    let report = quick(&folder, "peers", &["-m", "cbc-128-x64", "-s", "1K", "-s", "32M"]);
    assert_eq!(results(&report, "peers").len(), 1);
    let findings = report["suites"]["peers"]["findings"].to_string();
    assert!(findings.contains("cbc-128-x64 at 32 MiB was left out"), "{findings}");
    // A single contender is not reported as faster than others.
    assert!(
        !findings.contains("No peer") && findings.contains("1 of 1 measurements had no peer"),
        "{findings}"
    );
    run(&["throughput", "--device", "cpu", "--kernel", "spu/ctr4"]).failed(2, "kernel");
    // A second unknown name is refused too.
    let soft = ["throughput", "-m", "ctr-128", "--kernel", "cpu/soft"];
    run(&[&soft[..], &["--kernel", "abacus/ctr"]].concat()).failed(2, "abacus");
    run(&[&soft[..], &["--device", "cpu", "--kernel", "spu/ctr4"]].concat())
        .failed(2, "kernels like spu/ctr4");
    let kernels = ["-m", "ctr-128", "--device", "cpu", "--kernel", "cpu/soft", "--kernel", "cpu/abacus"];
    let findings = quick(&folder, "peers", &kernels)["suites"]["peers"]["findings"].to_string();
    assert!(findings.contains("measures cpu/soft only, not cpu/abacus"), "{findings}");
    run(&["throughput", "--kernel", "cpu/abacus"]).failed(2, "cpu/abacus");
    run(&["latency", "--device", "abacus"]).failed(2, "abacus");
    run(&["--threads", "0"]).failed_usage("from 1 to 1024");
    run(&["--seconds", "0"]).failed_usage("more than 0");
    run(&["--rounds", "0"]).failed_usage("--rounds");
    run(&["--openssl", "openssl", "--no-openssl"]).failed_usage("--no-openssl");
    let mut command = folder.command(["bench", "latency", "--quick"]);
    Ended::from(command.env("LOCKSTEP_DEVICE", "abacus").output().unwrap()).failed(2, "abacus");
}
