use super::*;

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
