use super::*;

#[test]
fn memory_is_bounded_for_any_number_of_threads() {
    for workers in 1..=MAX_WORKERS {
        let chunks = piece_chunks(workers, None);
        assert!(chunks >= 1 && workers * chunks * ENCRYPTED_CHUNK <= MEMORY, "{workers}");
    }
    assert_eq!(piece_chunks(2, Some(3)), 3);
    assert_eq!(piece_chunks(2, Some(u64::MAX)), PIECE_CHUNKS);
}

/// Runs the pipeline on ten pieces with four workers. The named step of the given piece fails, or panics if `panics` is true.
/// Returns the outcome of the run, or `None` if it panicked, and the numbers of the pieces that were written.
fn run_with_fault(step: &str, piece: u64, panics: bool) -> (Option<Result<()>>, Vec<u64>) {
    let fault = |at: &str, number: u64| match at == step && number == piece {
        true if panics => panic!("on purpose"),
        true => Err(crate::Error::Interrupted),
        false => Ok(()),
    };
    let (mut next, mut written) = (0, Vec::new());
    let read = |slot: &mut Slot<u64>| {
        slot.1 = next;
        next += 1;
        fault("read", slot.1).map(|()| next == 10)
    };
    let write = |slot: &mut Slot<u64>| fault("write", slot.1).map(|()| written.push(slot.1));
    let workers = Workers { count: 4, chunks: 1, options: Options::default() };
    let all = || run(workers, read, |slot| fault("process", slot.1), write);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(all));
    (outcome.ok(), written)
}

#[test]
fn a_step_that_fails_or_panics_ends_the_run() {
    assert!(
        matches!(run_with_fault("none", 0, false), (Some(Ok(())), written) if written == (0..10).collect::<Vec<_>>())
    );
    for step in ["read", "process", "write"] {
        for piece in 0..10 {
            let (outcome, written) = run_with_fault(step, piece, false);
            assert!(matches!(outcome, Some(Err(crate::Error::Interrupted))), "{step}, {piece}");
            // The pieces before the failed piece are written, and no other pieces.
            assert_eq!(written, (0..piece).collect::<Vec<_>>(), "{step}, {piece}");
            let (outcome, written) = run_with_fault(step, piece, true);
            assert!(outcome.is_none(), "{step}, {piece}");
            assert!(written.iter().copied().eq(0..written.len() as u64) && written.len() as u64 <= piece);
        }
    }
}
