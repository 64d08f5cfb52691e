//! Compares the clocks of the kernels with the paper's clocks and with fixed limits.

use lockstep_core::work::Pass;
use lockstep_spu::isa::Class;
use lockstep_spu::kernels::measure::{clocks, clocks_by, summary, trace};
use lockstep_spu::kernels::{Columns, Hints, KERNELS, Loop, Mode, Named, RoundLoop, Substitution, Way};
use lockstep_spu::schedule::Effort;
use lockstep_spu::sim::Rules;

fn kernel(name: &str) -> &'static Named {
    KERNELS.iter().find(|kernel| kernel.name == name).unwrap()
}

fn round(name: &str, pass: Pass) -> f64 {
    clocks(kernel(name).loop_for(pass).unwrap(), Effort::Full).unwrap().round
}

#[test]
fn the_plain_kernel_takes_the_papers_clocks() {
    // This test calibrates the model: latencies, pairs, alignment and the branch penalty all influence these three
    // numbers.
    let found = clocks(kernel("spu/ctr0").loops[0].1, Effort::Full).unwrap();
    assert_eq!(found.block, [824.0, 994.0, 1164.0]);
    assert_eq!((found.round, found.last), (85.0, -26.0));
    let rates = found.gigabits().map(|rate| (rate * 1000.0).round());
    assert_eq!(rates, [496.0, 411.0, 351.0]);
}

#[test]
fn no_kernel_is_slower_than_the_papers() {
    for kernel in KERNELS {
        let Some((round, last)) = kernel.paper else { continue };
        let found = clocks(kernel.loops[0].1, Effort::Full).unwrap();
        assert!(found.round <= round, "{}: {found:?}", kernel.name);
        for (found, rounds) in found.block.into_iter().zip([10.0, 12.0, 14.0]) {
            let paper = rounds * round + last;
            assert!(found <= paper, "{}, {rounds} rounds: {found}, the paper {paper}", kernel.name);
        }
    }
}

#[test]
fn kernels_stay_below_their_limits() {
    assert!(round("spu/ctr-vperm", Pass::Ctr) <= 14.0);
    assert!(round("spu/vperm", Pass::EcbEncrypt) <= 14.0);
    assert!(round("spu/ecb-decrypt", Pass::EcbDecrypt) <= 17.0);
    assert!(round("spu/cbc-decrypt", Pass::CbcDecrypt) <= 17.0);
    assert!(round("spu/vperm", Pass::Cfb128Decrypt) <= 14.0);
    assert!(round("spu/tab4", Pass::Ctr) <= 27.0);
    assert!(round("spu/ctr4", Pass::Ctr) <= 17.5);
    assert!(round("spu/cbc2", Pass::CbcEncrypt) <= 32.0);
}

/// Returns each loop once, with the first kernel that has this loop.
fn loops() -> Vec<(&'static Named, Loop)> {
    let mut all: Vec<(&'static Named, Loop)> = Vec::new();
    for (kernel, of) in
        KERNELS.iter().flat_map(|kernel| kernel.loops.iter().map(move |entry| (kernel, entry.1)))
    {
        if !all.iter().any(|other| other.1 == of) {
            all.push((kernel, of));
        }
    }
    all
}

#[test]
fn scheduling_makes_kernels_faster() {
    for (kernel, of) in loops() {
        if of.way == Way::Plain(Hints::None) {
            continue;
        }
        let (on, off) = (clocks(of, Effort::Full).unwrap(), clocks(of, Effort::Off).unwrap());
        for (on, off) in on.block.into_iter().zip(off.block) {
            let ratio = off / on;
            assert!(ratio >= 1.5, "{} {:?}: only {ratio:.2} times worse without", kernel.name, of.mode);
        }
    }
}

/// Each branch that is taken without a hint costs 18 cycles. The table of hints also has a hint for the last round, so it saves 18 cycles for
/// each block: about three percent, as the paper states.
#[test]
fn hints_save_the_penalties_of_branches() {
    let [none, fixed, table] = [Hints::None, Hints::Fixed, Hints::Table].map(|hints| {
        let of = Loop { way: Way::Plain(hints), mode: Mode::Ctr, blocks: 1, overlaps: false };
        let lost = summary(of, 10).unwrap().stalls.get("branch").copied().unwrap_or(0);
        (clocks(of, Effort::Full).unwrap().block[0], lost)
    });
    // Without hints, eight branches to the next round and the branch to the next block cost cycles. With fixed hints, the last branch
    // of each loop over rounds costs cycles. In addition, the last branch of the call costs cycles, both with fixed hints and with the
    // table of hints.
    assert_eq!([none.1, fixed.1, table.1], [8 * 1024 + 1023, 1024 + 1, 1].map(|branches| 18 * branches));
    let saved = 1.0 - table.0 / fixed.0;
    assert!((0.01..0.04).contains(&saved), "{none:?} {fixed:?} {table:?}");
}

/// With other rules, the calibration kernel takes the number of clocks that follows from the listing in the paper. This shows that each
/// rule has an effect.
#[test]
fn every_rule_affects_the_plain_kernel() {
    let rules = Rules::default();
    let slower = |class, more| Rules { slower: Some((class, more)), ..rules };
    for (rules, expected) in [
        (rules, (85.0, -26.0)),
        (Rules { penalty: 19, ..rules }, (86.0, -27.0)),
        (slower(Class::Fx, 1), (96.0, -25.0)),
        (slower(Class::Ws, -1), (82.0, -23.0)),
        (slower(Class::Ws, -2), (79.0, -20.0)),
        (slower(Class::Sh, -1), (83.0, -24.0)),
        (slower(Class::Sh, 1), (87.0, -28.0)),
        (slower(Class::Ls, -1), (84.0, -28.0)),
        (slower(Class::Ls, 1), (86.0, -24.0)),
    ] {
        let found = clocks_by(kernel("spu/ctr0").loops[0].1, Effort::Full, rules).unwrap();
        assert_eq!((found.round, found.last), expected, "{rules:?}");
    }
}

#[test]
fn descriptions_state_the_blocks_in_flight() {
    for (kernel, of) in KERNELS.iter().map(|kernel| (kernel, kernel.loops[0].1)) {
        if of.mode.is_chain() || kernel.loops.len() > 2 {
            continue;
        }
        for rounds in [10, 12, 14] {
            let stages = of.compiled(rounds, Effort::Full).unwrap().program.stages;
            let expected = match (of.blocks, stages) {
                (1, 1) => continue,
                (blocks, 1) => format!(", {blocks} blocks in flight"),
                (blocks, _) => format!(", {blocks} blocks per iteration, iterations overlap"),
            };
            assert!(kernel.description.ends_with(&expected), "{}: {expected}", kernel.name);
        }
    }
}

#[test]
fn unrolling_saves_at_most_the_count_and_the_address() {
    let rolled = |way, blocks| RoundLoop::compile(way, blocks).unwrap().clocks().unwrap();
    const BALANCED: Way = Way::Columns(Substitution::LookupBalanced, Columns::FewestEven);
    let unrolled = |way, blocks| {
        clocks(Loop { way, mode: Mode::Ctr, blocks, overlaps: false }, Effort::Full).unwrap().round
    };
    // In a loop over the rounds of one chain, the branch, the count and the load of the key use free slots. So this loop is as fast as the
    // unrolled one.
    assert_eq!(rolled(Way::Lookup, 1), round("spu/cbc2", Pass::CbcEncrypt));
    // The iterations of these loops over rounds overlap, unlike those of the unrolled loops. But a loop over rounds has two more
    // instructions of the even pipe for all blocks: it counts, and increments the address of the key. Kernels with more overlapping
    // iterations have more blocks in flight and are faster.
    for (way, blocks, more) in [(BALANCED, 4, "spu/ctr4"), (Way::Tables, 2, "spu/tab4")] {
        let (kept, gone, more) = (rolled(way, blocks), unrolled(way, blocks), round(more, Pass::Ctr));
        let counting = 2.0 / f64::from(blocks);
        assert!(more < kept && kept <= gone + counting, "{way:?}: {more} {kept} {gone}");
    }
}

#[test]
fn breakdown_of_the_cycles() {
    let found = summary(kernel("spu/ctr-vperm").loops[0].1, 10).unwrap();
    assert!(found.dual_rate() > 0.95, "{found}");
    let stalls: u64 = found.stalls.values().sum();
    assert!(stalls * 100 < found.cycles(), "{found}");
    let plain = summary(kernel("spu/ctr0").loops[0].1, 10).unwrap();
    // Each round loses 18 clocks to its branch, which has no hint. The branch of the last round is not taken, but the
    // branch of the block is taken.
    assert_eq!(plain.stalls["branch"], 18 * (9 * 1024 + 1023 - 1024));
}

#[test]
fn the_trace_shows_both_pipes() {
    let found = trace(kernel("spu/ctr0").loops[0].1, 10, 100..140).unwrap();
    let text = found.to_string();
    assert!(text.lines().any(|line| line.contains("cycles lost")), "{text}");
    assert!(text.lines().any(|line| line.contains("shufb")), "{text}");
    let busy = trace(kernel("spu/ctr-vperm").loops[0].1, 10, 5000..5100).unwrap().to_string();
    let dual = busy.lines().filter(|line| line.contains(" = ")).count();
    assert!(dual >= 95, "{busy}");
}

#[test]
fn caching_saves_a_round_of_three_words() {
    let block = |name: &str| clocks(kernel(name).loops[0].1, Effort::Full).unwrap().block[0];
    assert!(block("spu/tab4-cached") < block("spu/tab4") - 12.0);
}

#[test]
fn oversized_loops_are_refused() {
    let large = Loop { way: Way::Tables, mode: Mode::Ecb, blocks: 50, overlaps: false };
    let error = large.compile(14, Effort::Off).err().unwrap();
    assert!(error.contains("the local store has 262144"), "{error}");
    let many = Loop { way: Way::Lookup, mode: Mode::Ctr, blocks: 120, overlaps: false };
    let error = many.compile(10, Effort::Off).err().unwrap();
    assert!(error.contains("registers"), "{error}");
    for (way, mode, blocks) in [
        (Way::Vperm, Mode::CtrCached, 4),
        (Way::Plain(Hints::None), Mode::Ecb, 1),
        (Way::Vperm, Mode::Ctr, 0),
    ] {
        let error = Loop { way, mode, blocks, overlaps: true }.compile(10, Effort::Full).err().unwrap();
        assert!(error.contains("there is no loop"), "{error}");
    }
}
