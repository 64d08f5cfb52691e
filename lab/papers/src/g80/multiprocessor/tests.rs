use super::*;

/// Returns the clocks of one block of `warps` warps, each with this program.
fn block(steps: &[Step], warps: u32) -> u64 {
    clocks(&[steps.to_vec()], warps, 1, 1)
}

#[test]
fn six_warps_hide_the_latency() {
    let steps = [Step::Compute(100)];
    // One warp waits 24 clocks for each instruction.
    assert_eq!(block(&steps, 1), 2400);
    // Two to six warps take turns, and each takes as long as one warp alone. The last warp starts 4 clocks after the
    // previous one.
    for warps in 2..=6 {
        assert_eq!(block(&steps, warps), 2400 + 4 * u64::from(warps - 1));
    }
    // With six or more warps, the port is always busy: the time is 4 clocks for each instruction, and the latency of the last one.
    for warps in [6, 8, 24] {
        assert_eq!(block(&steps, warps), 4 * 100 * u64::from(warps) + 20);
    }
}

#[test]
fn conflicts_occupy_the_port() {
    // A lookup with 3 passes for each half-warp: it occupies the port for 12 clocks, and its result is ready 36 clocks after the start of
    // the last 4 of them.
    let lookup = Step::Access { port: 12, latency: 36 };
    assert_eq!(block(&[lookup], 1), 8 + 36);
    assert_eq!(block(&[lookup; 10], 1), 10 * 44);
    // With eight warps, the port is the limit. The last warp ends when the result of its last lookup is ready.
    assert_eq!(block(&[lookup; 10], 8), 8 * 10 * 12 + 32);
}

#[test]
fn warps_of_a_block_wait_at_barriers() {
    // Warp 0 has 10 instructions before the barrier and warp 1 has 2.
    let programs = [
        vec![Step::Compute(10), Step::Barrier, Step::Compute(1)],
        vec![Step::Compute(2), Step::Barrier, Step::Compute(1)],
    ];
    // Warp 0 reaches the barrier after 240 clocks. Both warps continue 24 clocks later, one 4 clocks after the other.
    assert_eq!(clocks(&programs, 2, 1, 1), 240 + 24 + 4 + 24);
    // Without the barrier, warp 1 does not wait, so the time is that of warp 0.
    let free = programs.map(|program| program.into_iter().filter(|step| *step != Step::Barrier).collect());
    assert_eq!(clocks(&free, 2, 1, 1), 11 * 24);
}

#[test]
fn a_block_that_ends_is_replaced() {
    let steps = [vec![Step::Compute(10)]];
    // In the first case, three blocks run one after the other. In the second case, two blocks run at the same time. Five blocks, of which
    // two run at the same time, take three rounds.
    assert_eq!(clocks(&steps, 1, 1, 3), 3 * 240);
    assert_eq!(clocks(&steps, 1, 2, 2), 240 + 4);
    assert_eq!(clocks(&steps, 1, 2, 5), 3 * 240);
    // When a short block ends while a long block runs, another block replaces the short one.
    let mixed = [vec![Step::Compute(30)], vec![Step::Compute(10)]];
    assert_eq!(clocks(&mixed, 1, 2, 2), 720);
    let short_ones = [vec![Step::Compute(30)], vec![Step::Compute(10)], vec![Step::Compute(10)]];
    assert_eq!(clocks(&short_ones, 1, 2, 3), 720);
}

#[test]
fn occupancy() {
    // The 16 KiB of shared memory are divided by the bytes of a block: 4 KiB of tables, a header of 64 bytes, and for each thread 16 bytes
    // of state with coarse grain, or 8 with fine grain.
    let blocks =
        |threads: u32, state: u32| LIMITS.resident(threads.div_ceil(32), 4096 + 64 + state * threads);
    assert_eq!([8, 32, 64, 128, 256].map(|threads| blocks(threads, 16)), [3, 3, 3, 2, 1]);
    assert_eq!([8, 32, 64, 128, 256, 512].map(|threads| blocks(threads, 8)), [3, 3, 3, 3, 2, 1]);
    // Without tables, the limits are 24 warps and 8 blocks. A block that needs more than all of the shared memory does not fit.
    let warps = |threads: u32| LIMITS.resident(threads.div_ceil(32), 64);
    assert_eq!([8, 96, 128, 256, 512].map(warps), [8, 8, 6, 3, 1]);
    assert_eq!(LIMITS.resident(16, 4096 + 64 + 32 * 512), 0);
}
