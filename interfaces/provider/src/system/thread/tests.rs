
use super::*;

/// Sends a signal to this thread alone.
fn raise(signal: c_int) {
    // SAFETY: `pthread_self` returns this thread, which is running.
    assert_eq!(unsafe { libc::pthread_kill(libc::pthread_self(), signal) }, 0);
}

#[test]
fn signals_of_writes_are_discarded_and_earlier_ones_are_kept() {
    std::thread::spawn(|| {
        without_signals(|| raise(libc::SIGXFSZ));
        assert_eq!(pending(), [false, false]);
        without_signals(|| {
            raise(libc::SIGXFSZ);
            without_signals(|| raise(libc::SIGXFSZ));
            // The signal was pending before the inner call, so it was not discarded.
            assert_eq!(pending(), [false, true]);
        });
        assert_eq!(pending(), [false, false]);
        let too_large = || io::Error::from_raw_os_error(libc::EFBIG);
        let failed = write_without_signals(|| {
            raise(libc::SIGXFSZ);
            Err::<(), _>(too_large())
        });
        assert_eq!(failed.unwrap_err().raw_os_error(), Some(libc::EFBIG));
        assert_eq!(pending(), [false, false]);
    })
    .join()
    .unwrap();
}
