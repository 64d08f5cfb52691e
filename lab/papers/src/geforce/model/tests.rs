use super::*;
use crate::geforce::files::Content;
use crate::geforce::paper::EDGE;

const SAMPLE: Sample = Sample { stretches: 1, quads: 8 };

fn misses(content: Content, machine: Machine) -> Misses {
    let file = File { content, ..File::of(4) };
    Traces::new(&file, EDGE, machine.distribution, SAMPLE).misses(&machine)
}

fn small(quads: u32) -> Machine {
    Machine { quads, ..MACHINE }
}

#[test]
fn quads_fill_rows_and_textures() {
    assert_eq!(blocks_of(0, 512), [0, 1, 512, 513]);
    assert_eq!(blocks_of(255, 512), [510, 511, 1022, 1023]);
    assert_eq!(blocks_of(256, 512), [1024, 1025, 1536, 1537]);
    assert_eq!(blocks_of(65536, 512)[0], 512 * 512);
    assert_eq!(blocks_of(4, 4)[0], 16);
}

#[test]
fn lines_of_texels() {
    let lines = Lines::new(&MACHINE);
    // A line has 64 texels of one byte. The tables follow each other in memory.
    assert_eq!(lines.of(Texture::Xor, 0x00ff), 3);
    assert_eq!(lines.of(Texture::Xor, 0x0100), 4);
    assert_eq!(lines.of(Texture::Sbox, 0), 1024);
    assert_eq!(lines.of(Texture::Xtime, 64), 1029);
    // A line has 16 texels of four bytes, which are 4 x 4 texels in Morton order.
    let lines = Lines::new(&Machine { texel: 4, order: Order::Morton, ..MACHINE });
    assert_eq!([0x0303, 0x0004, 0x0400].map(|texel| lines.of(Texture::Xor, texel)), [0, 1, 2]);
}

#[test]
fn fragments_with_equal_states_share_their_misses() {
    // With one repeated block, at most the first fragment of a group misses in a lookup.
    let one = misses(Content::Constant, small(8));
    assert_eq!(one.lookups, [176, 160, 144, 576].map(|lookups| 32 * lookups));
    assert_eq!(one.quads, 8);
    assert!(one.misses.iter().sum::<u64>() <= LOOKUPS as u64);
    // With fewer fragments, the number of misses is the same and the number of lookups is smaller.
    let half = misses(Content::Constant, small(4));
    assert_eq!(half.misses, one.misses);
    assert!((half.rate() - 2.0 * one.rate()).abs() < 1e-12);
}

#[test]
fn a_cache_for_all_tables_misses_only_at_the_start() {
    let large = Machine { cache: Geometry { bytes: 1 << 17, ..MACHINE.cache }, ..small(8) };
    // The first group of each stretch has no misses, because its lines are in the cache at the start.
    assert_eq!(misses(Content::Random, large).misses, [0; 4]);
    let traces = Traces::new(&File::of(4), EDGE, Distribution::Blocked, SAMPLE);
    let eight = traces.misses_of_groups(&Machine { quads: 1, ..large }, 8);
    // Each line of the three tables is loaded at most once.
    assert!((1..1024 + 8).contains(&eight.misses.iter().sum::<u64>()), "{:?}", eight.misses);
}

#[test]
fn quads_diverge_by_their_different_blocks() {
    let divergence = |content| {
        let file = File { content, ..File::of(4) };
        Traces::new(&file, EDGE, Distribution::Blocked, SAMPLE).divergence(&MACHINE)
    };
    assert_eq!(divergence(Content::Constant), 0.0);
    // If a quad has two different blocks, its four lookups need at most one additional line.
    let two = divergence(Content::Repeating(2));
    assert!(two > 0.1 && two < 0.25, "{two}");
    assert!(divergence(Content::Random) > 2.0 * two);
}

#[test]
fn pipelines_have_every_fourth_quad_if_interleaved() {
    // The blocks of a counting file repeat after eight quads of a row. One pipeline gets two of these eight quads, in which four blocks are
    // different.
    let different = |distribution| {
        let traces = Traces::new(&File::of(1), EDGE, distribution, SAMPLE);
        let first_lookup = &traces.stretches[0][..traces.fragments];
        first_lookup.iter().collect::<std::collections::HashSet<_>>().len()
    };
    assert_eq!(different(Distribution::Blocked), 16);
    assert_eq!(different(Distribution::Interleaved), 4);
}

#[test]
fn time_is_linear_in_misses_and_passes() {
    let cost = Cost { base: 4.0, miss: 20.0 };
    // 212 passes of 512 x 512 blocks, each with 1056 lookups. 16 pixel pipelines take 4 clocks for a lookup, at 350 MHz.
    let base = 212.0 * 262_144.0 * 1056.0 * 4.0 / 16.0 / 350e6;
    assert!((cost.seconds(&File::of(4), 512, 0.0) - base).abs() < 1e-9);
    assert!((cost.seconds(&File::of(4), 512, 0.2) - 2.0 * base).abs() < 1e-9);
    assert!((cost.seconds(&File::of(7), 512, 0.0) - base * 30.0 / 212.0).abs() < 1e-9);
}
