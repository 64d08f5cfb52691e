
use super::*;

#[test]
fn several_files_are_counted_with_their_bytes() {
    let args = ProgressArgs { progress: When::Never, quiet: false, json: false, explain: false };
    let progress = Progress::start(&args, Some(4000), Some(3));
    progress.advance(1000);
    progress.file_done();
    progress.advance(600);
    let done = progress.bytes_done.load(Ordering::Relaxed);
    let line = progress.line(done, Duration::from_secs(2));
    assert_eq!(line, "1 of 3 files, 1.6 KiB of 3.9 KiB, 40 %, 0.8 kB/s, 3 s left");
}
