//! The model of the transfers.

use lockstep_spu::sim::{Dma, Transfer, overlapped};

const PIECE: u64 = 16 * 1024;

fn pieces(clocks: u64) -> Vec<Transfer> {
    vec![Transfer { bytes_in: PIECE, clocks, bytes_out: PIECE }; 64]
}

#[test]
fn slow_kernels_hide_their_transfers() {
    let dma = Dma { sharers: 1 };
    let all = overlapped(dma, &pieces(100_000));
    // All computing, the first transfer in and the last one out.
    assert_eq!(all, 64 * 100_000 + 2 * dma.clocks(PIECE));
}

#[test]
fn fast_kernels_wait_for_memory() {
    let dma = Dma { sharers: 1 };
    let all = overlapped(dma, &pieces(10));
    assert!(all >= 128 * dma.clocks(PIECE) && all < 130 * dma.clocks(PIECE));
}

#[test]
fn memory_is_shared() {
    let alone = Dma { sharers: 1 }.clocks(PIECE);
    let eight = Dma { sharers: 8 }.clocks(PIECE);
    assert!(eight > 7 * (alone - Dma::LATENCY) && eight < 9 * alone);
    assert_eq!(Dma { sharers: 8 }.clocks(0), 0);
}

#[test]
fn no_faster_than_the_port() {
    let clocks = Dma { sharers: 1 }.clocks(PIECE);
    assert_eq!(clocks, Dma::LATENCY + PIECE / 8);
}
