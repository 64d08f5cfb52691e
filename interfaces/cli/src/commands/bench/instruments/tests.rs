use super::*;

#[test]
fn counters_of_packages_are_added_and_wrap_around() {
    let folder = tempfile::tempdir().unwrap();
    let put = |zone: &str, name: &str, energy: u64| {
        let zone = folder.path().join(zone);
        fs::create_dir_all(&zone).unwrap();
        fs::write(zone.join("name"), format!("{name}\n")).unwrap();
        fs::write(zone.join("energy_uj"), format!("{energy}\n")).unwrap();
        fs::write(zone.join("max_energy_range_uj"), "1000000\n").unwrap();
    };
    assert!(Meter::packages_in(folder.path()).is_err());
    put("intel-rapl:0", "package-0", 400_000);
    put("intel-rapl:1", "package-1", 900_000);
    put("intel-rapl:0:0", "core", 5);
    // A second zone of the first package must not be counted twice.
    put("intel-rapl-mmio:0", "package-0", 400_000);
    let meter = Meter { packages: Meter::packages_in(folder.path()), gpus: None };
    assert!(meter.describe().starts_with("2 processor packages by RAPL;"));
    let before = meter.read();
    put("intel-rapl:0", "package-0", 600_000);
    put("intel-rapl-mmio:0", "package-0", 600_000);
    put("intel-rapl:1", "package-1", 200_000);
    assert_eq!(meter.since(&before), [Some(0.2 + 0.3), None]);
    // If the range of a counter is unknown and its value has become smaller, the energy is unknown.
    let mut unknown = Meter { packages: meter.packages.clone(), gpus: None };
    unknown.packages.iter_mut().flatten().for_each(|package| package.range = None);
    assert_eq!(unknown.since(&before), [None; 2]);
    // The energy is also unknown if the first value of the counter exceeds the range of the counter.
    put("intel-rapl:1", "package-1", 2_000_000);
    let beyond = meter.read();
    put("intel-rapl:1", "package-1", 0);
    assert_eq!(meter.since(&beyond), [None; 2]);
    fs::write(folder.path().join("intel-rapl:1/energy_uj"), "none").unwrap();
    assert_eq!(meter.since(&before), [None; 2]);
    // If the counter of one of two packages cannot be read, the energy of the readable package is not reported as the total.
    assert!(Meter::packages_in(folder.path()).err().unwrap().contains("root may"));
    assert!(Meter::packages_in(Path::new("/nonexistent")).err().unwrap().contains("RAPL"));
}

#[test]
fn a_missing_value_makes_the_sum_missing() {
    let stretch = |joules| Spent { bytes: 1.0, elapsed: Duration::from_secs(1), joules, ..Spent::NOTHING };
    let [both, none] = [[Some(1.5), Some(4.0)], [None, Some(1.0)]].map(stretch);
    let mut sum = Spent::NOTHING;
    sum.add(both);
    assert_eq!(sum.joules_per_byte(), [Some(1.5), Some(4.0)]);
    sum.add(none);
    sum.add(both);
    assert_eq!(sum.joules_per_byte(), [None, Some(3.0)]);
    assert_eq!(sum.rate(), 1.0);
}

#[test]
fn energy_of_less_than_a_second_is_not_reported() {
    let joules = |milliseconds| {
        let elapsed = Duration::from_millis(milliseconds);
        Spent { bytes: 3.0, elapsed, joules: [Some(6.0), None], ..Spent::NOTHING }.joules_per_byte()
    };
    assert_eq!([joules(990), joules(1000)], [[None; 2], [Some(2.0), None]]);
}

#[test]
fn stretches_are_timed() {
    let (_, spent) = timed(|| {
        let before = process_time();
        while process_time() - before < Duration::from_millis(50) {
            std::hint::black_box(0);
        }
    });
    assert!(spent.cpu >= Duration::from_millis(50));
    let (slept, spent) = timed(|| {
        std::thread::sleep(Duration::from_millis(20));
        7
    });
    assert!(slept == 7 && spent.elapsed >= Duration::from_millis(20));
}

#[test]
fn children_are_counted() {
    if !std::path::Path::new("/proc/self/stat").exists() {
        assert_eq!(children_time(), None);
        return;
    }
    let before = children_time().unwrap();
    // This loop takes more than one clock tick of CPU time.
    let count = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    assert!(std::process::Command::new("sh").args(["-c", count]).status().unwrap().success());
    assert!(children_time().unwrap() > before);
}
