//! The model of the transfers, by cases that are small enough to be worked out by hand.

use lockstep_spu::sim::{Chip, Transfer, clocks};

/// A chip with easy numbers: 10 clocks to begin, 8 bytes a clock for each port, 8 for all together.
const CHIP: Chip = Chip { latency: 10.0, port: 8.0, memory: 8.0 };

fn row(pieces: usize, bytes_in: u64, clocks: u64, bytes_out: u64) -> Vec<Transfer> {
    vec![Transfer { bytes_in, clocks, bytes_out, alone: false }; pieces]
}

#[test]
fn one_piece_waits_for_everything() {
    // 10 + 800 / 8, then 1000, then 10 + 400 / 8.
    assert_eq!(clocks(&CHIP, &[row(1, 800, 1000, 400)]), 110 + 1000 + 60);
    assert_eq!(clocks(&CHIP, &[row(1, 800, 1000, 0)]), 110 + 1000);
    assert_eq!(clocks(&CHIP, &[row(1, 0, 1000, 0)]), 1000);
    assert_eq!(clocks(&CHIP, &[]), 0);
    assert_eq!(clocks(&CHIP, &[Vec::new(), row(1, 80, 5, 80)]), 20 + 5 + 20);
}

#[test]
fn slow_kernels_hide_their_transfers() {
    // All computing, the first transfer in and the last one out.
    assert_eq!(clocks(&CHIP, &[row(5, 800, 1000, 800)]), 110 + 5 * 1000 + 110);
}

#[test]
fn input_comes_early_and_its_wait_is_hidden() {
    // Nothing goes out: both buffers are asked for at once, so that the second needs no wait of its own: 110, 210. The third
    // is asked for when the first has been computed, at 115, the fourth at 215: behind the third, which comes until 310.
    assert_eq!(clocks(&CHIP, &[row(2, 800, 5, 0)]), 210 + 5);
    assert_eq!(clocks(&CHIP, &[row(3, 800, 5, 0)]), 310 + 5);
    assert_eq!(clocks(&CHIP, &[row(4, 800, 5, 0)]), 410 + 5);
    // A shorter transfer does not hide the wait: 20 and 30 are the first two, the third is asked for at 21 and comes
    // at 31 to 41, the fourth is asked for at 31 and comes until 51.
    assert_eq!(clocks(&CHIP, &[row(4, 80, 1, 0)]), 51 + 1);
}

#[test]
fn in_and_out_share_the_memory() {
    // In: 110, 210. At 110 the first is computed at once and goes out from 120 on, beside the second: in the 10 clocks from
    // 110 to 120 that gets 80 bytes; then 4 bytes a clock each. The second is in at 120 + 720 / 4 = 300, when 80 bytes
    // of the first are left; they go alone, for what was asked for at 300 begins at 310: 310. Then the second goes out from
    // 310 on: 410.
    assert_eq!(clocks(&CHIP, &[row(2, 800, 0, 800)]), 410);
}

#[test]
fn output_waits_for_its_buffer() {
    // Input is there at once. Computed at 1, 2; the first goes out from 11 to 111, and only then the third is computed: 112.
    // The second goes out until 211, the third until 311.
    assert_eq!(clocks(&CHIP, &[row(3, 0, 1, 800)]), 311);
    // Seen by the processor: the fifth starts when the third is out.
    let mut pieces = row(5, 0, 1, 800);
    pieces[4] = Transfer { bytes_in: 0, clocks: 1000, bytes_out: 0, alone: false };
    assert_eq!(clocks(&CHIP, &[pieces]), 311 + 1000);
}

#[test]
fn spes_share_the_memory_evenly() {
    // Two at once: half the rate each.
    assert_eq!(clocks(&CHIP, &vec![row(1, 800, 7, 0); 2]), 10 + 200 + 7);
    assert_eq!(clocks(&CHIP, &vec![row(1, 800, 7, 0); 8]), 10 + 800 + 7);
    // The smaller one is done at 10 + 2 * 400 / 8 = 110; the larger one has 400 left, which then go twice as fast.
    assert_eq!(clocks(&CHIP, &[row(1, 400, 0, 0), row(1, 800, 0, 0)]), 110 + 50);
}

#[test]
fn a_port_is_no_faster_than_it_is() {
    let wide = Chip { memory: 24.0, ..CHIP };
    assert_eq!(clocks(&wide, &[row(1, 800, 0, 0)]), 110);
    assert_eq!(clocks(&wide, &vec![row(1, 800, 0, 0); 3]), 110);
    assert_eq!(clocks(&wide, &vec![row(1, 800, 0, 0); 6]), 210);
}

#[test]
fn the_cell() {
    const PIECE: u64 = 16 * 1024;
    assert_eq!(clocks(&Chip::CELL, &[row(1, PIECE, 0, 0)]), 290 + PIECE / 8);
    // Without work to do, eight move as much as the memory gives: 8.02 bytes a clock.
    let all = clocks(&Chip::CELL, &vec![row(64, PIECE, 10, PIECE); 8]);
    let least = 8 * 64 * 2 * PIECE * 1000 / 8021;
    assert!(all > least && all < least + least / 50, "{all} {least}");
}

#[test]
fn long_calls_end_and_lose_no_clock() {
    const LONG: u64 = 1 << 35;
    assert_eq!(clocks(&CHIP, &[row(1, 800, LONG, 400)]), 110 + LONG + 60);
    // 1600 bytes at 8.02 a clock: 199.5.
    assert_eq!(clocks(&Chip::CELL, &vec![row(1, 800, LONG, 800); 2]), LONG + 2 * 290 + 399);
    // Uneven pieces on three SPEs; the longest row has the last word. Its transfers in and out are hidden or its own.
    let uneven = |clocks: u64| -> Vec<Transfer> {
        (0..9).map(|i| Transfer { clocks: clocks + 7 * i, ..row(1, 801 + i, 0, 1000 + i)[0] }).collect()
    };
    let rows = [uneven(1 << 32), uneven((1 << 32) + 12_345), uneven((1 << 31) + 77)];
    // 12 345 clocks after the others have begun nobody else moves anything at the end: the last out is 1008 bytes. At the
    // beginning three come in at once, a third of 8 bytes a clock each.
    let first = 10 + 3 * 801_u64.div_ceil(8);
    let computing = 9 * ((1 << 32) + 12_345) + 7 * 36;
    let found = clocks(&CHIP, &rows);
    let expected = first + computing + 10 + 126;
    assert!(found.abs_diff(expected) <= 3, "{found} {expected}");
    // Far more than a part of a clock would survive beside a large number.
    let many = vec![row(1000, 801, 1 << 26, 803); 8];
    let found = clocks(&Chip::CELL, &many);
    assert!(found > 1000 << 26 && found < (1000 << 26) + 4000, "{found}");
}

#[test]
fn what_is_alone_has_nothing_beside_it() {
    let load = Transfer { alone: true, ..row(1, 800, 0, 0)[0] };
    let piece = row(1, 80, 100, 80)[0];
    // Loaded at 110. Two pieces come until 130 and 140, are computed until 230 and 330, and the second goes out until 350.
    assert_eq!(clocks(&CHIP, &[vec![load, piece, piece]]), 350);
    // Another load waits for that: 460, and so on.
    assert_eq!(clocks(&CHIP, &[vec![load, piece, piece, load, piece]]), 350 + 110 + 140);
    // What it brings out counts as well: 110, 115, 127; the next comes until 147.
    let with_output = Transfer { clocks: 5, bytes_out: 16, ..load };
    assert_eq!(clocks(&CHIP, &[vec![with_output, piece]]), 127 + 140);
    // Without the word the load of the second key would be asked for while the first piece is computed.
    let beside = Transfer { alone: false, ..load };
    assert!(clocks(&CHIP, &[vec![beside, piece, beside, piece]]) < 2 * (110 + 140));
    assert_eq!(clocks(&CHIP, &[vec![load, piece, load, piece]]), 2 * (110 + 140));
}
