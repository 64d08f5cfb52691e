//! Tests of the model of the DMA transfers, with cases that can be computed by hand.

use lockstep_spu::sim::{Chip, Transfer, clocks};

/// A chip with round numbers: 10 clocks of latency, 8 bytes per clock for each port, and 8 bytes per clock for the
/// memory.
const CHIP: Chip = Chip { latency: 10.0, port: 8.0, memory: 8.0 };

fn row(pieces: usize, bytes_in: u64, clocks: u64, bytes_out: u64) -> Vec<Transfer> {
    vec![Transfer { bytes_in, clocks, bytes_out, exclusive: false }; pieces]
}

#[test]
fn one_piece_waits_for_everything() {
    // The input takes 10 + 800 / 8 clocks, the computation 1000, and the output 10 + 400 / 8.
    assert_eq!(clocks(&CHIP, &[row(1, 800, 1000, 400)]), 110 + 1000 + 60);
    assert_eq!(clocks(&CHIP, &[row(1, 800, 1000, 0)]), 110 + 1000);
    assert_eq!(clocks(&CHIP, &[row(1, 0, 1000, 0)]), 1000);
    assert_eq!(clocks(&CHIP, &[]), 0);
    assert_eq!(clocks(&CHIP, &[Vec::new(), row(1, 80, 5, 80)]), 20 + 5 + 20);
}

#[test]
fn slow_kernels_hide_their_transfers() {
    // The total is the time of all computations, of the first transfer to the SPE, and of the last transfer from the SPE.
    assert_eq!(clocks(&CHIP, &[row(5, 800, 1000, 800)]), 110 + 5 * 1000 + 110);
}

#[test]
fn input_comes_early_and_its_wait_is_hidden() {
    // Nothing is written. Both buffers are requested at once, so the second transfer has no latency of its own: the transfers are complete
    // at 110 and 210. The third piece is requested when the first has been computed, at 115, and the fourth at 215. The third piece is
    // complete at 310, and the fourth is transferred after it.
    assert_eq!(clocks(&CHIP, &[row(2, 800, 5, 0)]), 210 + 5);
    assert_eq!(clocks(&CHIP, &[row(3, 800, 5, 0)]), 310 + 5);
    assert_eq!(clocks(&CHIP, &[row(4, 800, 5, 0)]), 410 + 5);
    // A shorter transfer does not hide the latency. The first two pieces are complete at 20 and 30. The third is requested at 21 and
    // transferred from 31 to 41. The fourth is requested at 31 and complete at 51.
    assert_eq!(clocks(&CHIP, &[row(4, 80, 1, 0)]), 51 + 1);
}

#[test]
fn in_and_out_share_the_memory() {
    // The inputs arrive at 110 and 210 if nothing else is transferred. At 110 the first piece is computed at once, and
    // its output is written from 120 on, concurrently with the second input. From 110 to 120 the second input gets 80
    // bytes. Then each transfer gets 4 bytes per clock. The second input is complete at 120 + 720 / 4 = 300. At this
    // time 80 bytes of the first output are left. They are transferred alone until 310, because the request of 300
    // starts at 310. Then the second output is written, from 310 to 410.
    assert_eq!(clocks(&CHIP, &[row(2, 800, 0, 800)]), 410);
}

#[test]
fn output_waits_for_its_buffer() {
    // The input is available at once. The first two pieces are computed at 1 and 2. The first output is written from
    // 11 to 111, and only then is the third piece computed, at 112. The second output is written until 211, and the
    // third until 311.
    assert_eq!(clocks(&CHIP, &[row(3, 0, 1, 800)]), 311);
    // The buffer also delays the processor: the fifth computation starts when the third output has been written.
    let mut pieces = row(5, 0, 1, 800);
    pieces[4] = Transfer { bytes_in: 0, clocks: 1000, bytes_out: 0, exclusive: false };
    assert_eq!(clocks(&CHIP, &[pieces]), 311 + 1000);
}

#[test]
fn spes_share_the_memory_evenly() {
    // Two concurrent transfers each have half of the rate.
    assert_eq!(clocks(&CHIP, &vec![row(1, 800, 7, 0); 2]), 10 + 200 + 7);
    assert_eq!(clocks(&CHIP, &vec![row(1, 800, 7, 0); 8]), 10 + 800 + 7);
    // The smaller transfer is complete at 10 + 2 * 400 / 8 = 110. The larger transfer has 400 bytes left, which are
    // then transferred at twice the rate.
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
    // Without computation, eight SPEs transfer at the rate of the memory: 8.02 bytes per clock.
    let all = clocks(&Chip::CELL, &vec![row(64, PIECE, 10, PIECE); 8]);
    let least = 8 * 64 * 2 * PIECE * 1000 / 8021;
    assert!(all > least && all < least + least / 50, "{all} {least}");
}

#[test]
fn long_calls_are_exact() {
    const LONG: u64 = 1 << 35;
    assert_eq!(clocks(&CHIP, &[row(1, 800, LONG, 400)]), 110 + LONG + 60);
    // 1600 bytes at 8.02 bytes per clock take 199.5 clocks.
    assert_eq!(clocks(&Chip::CELL, &vec![row(1, 800, LONG, 800); 2]), LONG + 2 * 290 + 399);
    // Three SPEs process pieces of different sizes. The longest sequence ends last. Its transfers overlap with computation, or they are not
    // concurrent with other transfers.
    let uneven = |clocks: u64| -> Vec<Transfer> {
        (0..9).map(|i| Transfer { clocks: clocks + 7 * i, ..row(1, 801 + i, 0, 1000 + i)[0] }).collect()
    };
    let rows = [uneven(1 << 32), uneven((1 << 32) + 12_345), uneven((1 << 31) + 77)];
    // Each computation of the second SPE takes 12 345 clocks longer than a computation of the first. At the end of
    // its sequence no other SPE transfers anything, and its last output has 1008 bytes. At the start, three inputs
    // are transferred at once, each with a third of 8 bytes per clock.
    let first = 10 + 3 * 801_u64.div_ceil(8);
    let computing = 9 * ((1 << 32) + 12_345) + 7 * 36;
    let found = clocks(&CHIP, &rows);
    let expected = first + computing + 10 + 126;
    assert!(found.abs_diff(expected) <= 3, "{found} {expected}");
    // The sum is so large that adding a fraction of a clock to it would lose the fraction.
    let many = vec![row(1000, 801, 1 << 26, 803); 8];
    let found = clocks(&Chip::CELL, &many);
    assert!(found > 1000 << 26 && found < (1000 << 26) + 4000, "{found}");
}

#[test]
fn exclusive_transfers_are_not_concurrent() {
    let load = Transfer { exclusive: true, ..row(1, 800, 0, 0)[0] };
    let piece = row(1, 80, 100, 80)[0];
    // The program is loaded until 110. Two pieces arrive until 130 and 140, and are computed until 230 and 330. The
    // second output is written until 350.
    assert_eq!(clocks(&CHIP, &[vec![load, piece, piece]]), 350);
    // The second load waits for this output and ends at 460. The piece after this load takes 20 clocks for its input, 100 for its
    // computation and 20 for its output.
    assert_eq!(clocks(&CHIP, &[vec![load, piece, piece, load, piece]]), 350 + 110 + 140);
    // The next transfer also waits for the output of an exclusive transfer. The input of the exclusive transfer is complete at 110, the
    // computation at 115, and the output at 127. The next transfer is complete at 147.
    let with_output = Transfer { clocks: 5, bytes_out: 16, ..load };
    assert_eq!(clocks(&CHIP, &[vec![with_output, piece]]), 127 + 140);
    // Without `exclusive` the load of the second key would be requested while the first piece is computed.
    let beside = Transfer { exclusive: false, ..load };
    assert!(clocks(&CHIP, &[vec![beside, piece, beside, piece]]) < 2 * (110 + 140));
    assert_eq!(clocks(&CHIP, &[vec![load, piece, load, piece]]), 2 * (110 + 140));
}
