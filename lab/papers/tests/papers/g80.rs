//! Tests of the claims of the page about the model of the G80 family.

use lockstep_papers::g80::hypotheses::{self, Hypothesis, Verdict, copies, line_errors, ratios, whole_run};
use lockstep_papers::g80::model::{Machine, Traces};
use lockstep_papers::g80::program::{ASSUMPTIONS, Assumptions, KERNELS};
use lockstep_papers::g80::rows::{LIMIT, LIMIT_OF_TABLE_1, Row, Status};
use lockstep_papers::g80::variants::Variant;
use lockstep_papers::g80::{json, page, text};

use crate::G80;

fn row<'r>(rows: &'r [Row], what: &str) -> &'r Row {
    rows.iter().find(|row| row.what == what).unwrap_or_else(|| panic!("{what}"))
}

fn count(rows: &[Row], status: Status) -> usize {
    rows.iter().filter(|row| row.status == status).count()
}

fn variant(name: &str) -> &'static Variant {
    G80.variants.iter().find(|variant| variant.name == name).unwrap_or_else(|| panic!("{name}"))
}

#[test]
fn table_1_is_within_four_percent() {
    assert_eq!(G80.table_1.len(), 8);
    for row in &G80.table_1 {
        let limit = if row.status == Status::Fitted { 0.1 } else { LIMIT_OF_TABLE_1 };
        assert!(row.percent().abs() < limit, "{row:?}");
    }
    // Three figures of Table 1 determine the three fitted constants.
    assert_eq!([Status::Fitted, Status::Predicted].map(|status| count(&G80.table_1, status)), [3, 5]);
}

#[test]
fn figure_7() {
    let rows = &G80.figure_7;
    let tuned = row(rows, "shared: 256 threads / 8 threads, 32 KB");
    assert!(tuned.status == Status::Tuned && tuned.percent().abs() < LIMIT, "{tuned:?}");
    for what in ["shared: 256 threads / 8 threads, 128 KB", "constant: best / 8 threads, 128 KB"] {
        let row = row(rows, what);
        assert!(row.status == Status::Predicted && row.percent().abs() < LIMIT, "{row:?}");
    }
    assert_eq!(row(rows, "threads from which fine is ahead, 32 KB").model, 128.0);
    // With 8 and 16 threads, fine grain is slower than coarse grain.
    for rates in &G80.by_threads {
        for at in [0, 1] {
            assert!(rates[0][at].1 < rates[1][at].1, "{rates:?}");
        }
    }
}

/// Checks the rows that the model refutes. The page starts with these rows and explains them.
#[test]
fn what_the_model_refutes() {
    let refuted = |rows: &[Row]| -> Vec<String> {
        rows.iter().filter(|row| row.status == Status::Refuted).map(|row| row.what.clone()).collect()
    };
    assert_eq!(
        refuted(&G80.figure_7),
        ["constant: best / 8 threads, 32 KB", "threads from which fine is ahead, 128 KB"]
    );
    let break_evens = ["break-even of coarse grain, 8800 GT, KB", "break-even of coarse grain, 8400 GS, KB"];
    assert_eq!(refuted(&G80.figures_5_and_6), break_evens);
    assert_eq!(count(&G80.nominal, Status::Refuted), 5);
    // With 128 threads and 128 KB, the rates of both grains differ by less than half a percent.
    let at_128 =
        |kernel: usize| G80.by_threads[1][kernel].iter().find(|(threads, _)| *threads == 128).unwrap().1;
    let difference: f64 = at_128(0) / at_128(1) - 1.0;
    assert!((-0.005..0.0).contains(&difference), "{difference}");
}

/// Finds the explanation whose words contain `part`. Returns its verdict and the numbers in its reason.
fn explanation(all: &[Hypothesis], part: &str) -> (Verdict, Vec<f64>) {
    let one = all.iter().find(|one| one.words.contains(part)).unwrap_or_else(|| panic!("{part}"));
    let words = one.reason.split(|letter: char| !letter.is_ascii_digit() && !".+-".contains(letter));
    (one.verdict, words.filter_map(|word| word.trim_end_matches('.').parse().ok()).collect())
}

/// Checks each verdict, and the inequality of figures that the page gives as its reason.
#[test]
fn verdicts_follow_from_their_figures() {
    let check = |part: &str, verdict: Verdict, holds: fn(&[f64]) -> bool| {
        let (found, numbers) = explanation(&G80.hypotheses, part);
        assert!(found == verdict && holds(&numbers), "{part}: {found:?}, {numbers:?}");
    };
    check("copies from pageable", Verdict::Refuted, |n| matches!(n, [ms, _, run] if ms > run));
    // The lookups fit in addition to the copies, with fewer instructions than today's code has.
    check(
        "copies from page-locked",
        Verdict::Open,
        |n| matches!(n, [left, _, alone, fit, _, today] if left > alone && *fit > 2.0 && fit < today),
    );
    check(
        "because of its clock",
        Verdict::Refuted,
        |n| matches!(n, [ratio, clock, memory, waits] if ratio > clock && ratio > memory && ratio > waits),
    );
    // With either board, the model differs from the paper: the number of processors decides.
    check(
        "is a G98",
        Verdict::Refuted,
        |n| matches!(n, [_, 16.0, _, 8.0, paper, g98, _, nominal, ..] if g98 < paper && nominal > paper),
    );
    check(
        "as short as today's",
        Verdict::Refuted,
        |n| matches!(n, [832.0, _, _, short, paper, _] if *short > 1.15 * paper),
    );
    check("needs no barriers", Verdict::InPart, |n| {
        matches!(n, [with, without, equal, no_copies]
            if without < with && *without > 0.15 * with && equal < without && no_copies < equal)
    });
    check(
        "has more threads",
        Verdict::InPart,
        |n| matches!(n, [32.0, gt, .., gs, _] if *gt > 0.0 && *gs < 0.0),
    );
    check("round keys", Verdict::Refuted, |n| matches!(n, [44.0, 32.0, needed, _, card] if needed > card));
    check(
        "twice as many warps",
        Verdict::InPart,
        |n| matches!(n, [3.0, _, 6.0, _, 6.0, growth, _, free] if *free > 1.0 && free < growth),
    );
    check(
        "8 threads per block",
        Verdict::Refuted,
        |n| matches!(n, [blocks, 8.0, free, _, with] if *blocks < 8.0 && *free > 3.0 * with),
    );
    check(
        "one port",
        Verdict::Confirmed,
        |n| matches!(n, [words, slow, _, fast, free] if *words > 13.0 && free - slow > 0.85 * (fast - slow)),
    );
    check("one memory partition", Verdict::Refuted, |n| matches!(n, [one, .., longest] if one > longest));
    assert_eq!(G80.hypotheses.len(), 12);
}

/// With other rules of the machine, the verdicts differ.
#[test]
fn verdicts_change_with_the_rules() {
    let traces = Traces::new().unwrap();
    let verdict = |with: Assumptions, part: &str| {
        let machine = Machine::with_assumptions(&traces, with).with_fit(G80.fit);
        explanation(&hypotheses::all(&traces, &machine, &G80.traffic), part).0
    };
    let no_copies = Assumptions { copies_tables: false, ..ASSUMPTIONS };
    assert_eq!(verdict(no_copies, "twice as many warps"), Verdict::Confirmed);
    assert_eq!(
        verdict(Assumptions { barriers: false, ..ASSUMPTIONS }, "needs no barriers"),
        Verdict::Refuted
    );
    assert_eq!(verdict(Assumptions { constant_word: 0, ..ASSUMPTIONS }, "one port"), Verdict::Refuted);
    assert_eq!(
        verdict(Assumptions { state: [8, 64], ..ASSUMPTIONS }, "has more threads"),
        Verdict::Confirmed
    );
}

/// Checks sentences of the page against the figures.
#[test]
fn sentences_of_the_page() {
    // Constant memory at 32 KB: the throughput of the kernel alone grows by a factor of two, and the fixed time of a
    // call is more than half of the total time.
    let rates = &G80.by_threads[0][2];
    let seconds = |rate: f64| 8e-6 * 32768.0 / rate;
    let best = rates.iter().map(|(_, rate)| seconds(*rate)).fold(f64::MAX, f64::min);
    let growth = (seconds(rates[0].1) - G80.fit.call) / (best - G80.fit.call);
    assert!((1.8..2.2).contains(&growth) && G80.fit.call > best / 2.0, "{growth}");
    // Another page quotes the estimate for the layouts of Figure 3.
    let page = page(&G80, "g80").markdown;
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (before, _) = words(&page)
        .split_once(" % to the clocks of the issue port")
        .map(|(a, b)| (a.to_owned(), b.len()))
        .unwrap();
    let percent = before.rsplit(' ').next().unwrap();
    let other = words(include_str!("../../../../docs/papers/cuda-geforce8.md"));
    assert!(other.contains(&format!("adds {percent} % to the clocks of the issue port")), "{percent} %");
}

#[test]
fn no_mixture_of_ratios_explains_the_boards() {
    assert!(ratios().into_iter().all(|ratio| ratio < 11.7));
    let paper = row(&G80.nominal, "8800 GT / 8400 GS, 128 MB").paper;
    assert!(paper > 13.6, "{paper}");
}

#[test]
fn transfers_take_longer_than_the_whole_run() {
    assert!(copies(3e9) > whole_run());
    assert!(copies(6e9) < whole_run());
}

/// Table 1 is only a weak test of the model, as the page states: a simpler model, a fixed time and a rate for each board, also agrees with
/// the table.
#[test]
fn a_line_explains_table_1_too() {
    let errors = line_errors();
    let worst = errors.as_flattened().iter().map(|error| error.abs()).fold(0.0, f64::max);
    assert!((3.0..4.0).contains(&worst), "{errors:?}");
}

#[test]
fn lookups_of_the_kernels() {
    let names = KERNELS.map(|kernel| kernel.name());
    assert_eq!(names[..2], ["cuda/fine-shared", "cuda/coarse-shared"]);
    let [fine, coarse, fine_constant, coarse_constant] = G80.passes.map(|passes| passes[0]);
    assert!((2.9..3.1).contains(&fine) && (2.5..2.7).contains(&coarse), "{fine} {coarse}");
    assert!((13.4..13.8).contains(&fine_constant) && (13.0..13.3).contains(&coarse_constant));
    // Half-warps of 8 threads have fewer conflicts than half-warps of 16 threads.
    assert!(G80.passes.iter().all(|[full, half]| half < full));
}

#[test]
fn assumptions_that_figure_7_tests() {
    let factor = |name: &str, at: usize| variant(name).figure_7[at].model;
    assert!(factor("1 load in flight", 0) > 1.5 * 8.0);
    assert!(factor("4 loads in flight", 0) < 8.0 / 1.4);
    assert!(factor("T-boxes not copied by each block", 1) < 6.0);
    // If each bank can broadcast its word, fine grain is faster from 128 threads on, at both sizes.
    assert_eq!([4, 5].map(|at| factor("every bank broadcasts its word", at)), [128.0; 2]);
    for variant in &G80.variants {
        // All variants agree with Table 1, and none explains the break-even of the 8400 GS.
        assert!(variant.worst < LIMIT_OF_TABLE_1, "{variant:?}");
        assert!(variant.break_even[1] < 64 << 10, "{variant:?}");
    }
}

#[test]
fn the_kernel_of_the_thesis() {
    assert_eq!((G80.traffic.accesses, G80.traffic.bytes), (162, 162 * 32));
    // The program of GPU Gems 3 makes 160 lookups of SubBytes and 144 of MixColumns. Its load and its store coalesce.
    assert_eq!((G80.gems.accesses, G80.gems.bytes), (306, 304 * 32 + 2 * 16));
    // With the round keys in global memory, there are 44 more reads. The two largest rates are near 95 MB/s, the rate of the fragment
    // program in the chapter.
    assert_eq!(G80.gems.bytes_with_keys(), 9760 + 44 * 32);
    let (without_keys, with_keys) = G80.gems.largest_rates();
    assert!((without_keys / 1e6 - 105.0).abs() < 1.0 && (with_keys / 1e6 - 92.0).abs() < 1.0);
    let status = |memory: f64| -> Vec<Status> {
        G80.thesis.iter().filter(|row| row.memory == memory).map(|row| row.status).collect()
    };
    assert_eq!(status(1.0), [Status::Predicted; 4]);
    let [predicted, refuted] = [Status::Predicted, Status::Refuted];
    assert_eq!(status(0.67), [predicted, refuted, predicted, refuted]);
    assert!(G80.traffic.seconds_in_one_partition() > 20.0);
}

/// At 56 KB, each multiprocessor of the 8800 GT has one block of 4 KB. At 60 KB, one multiprocessor has a second block.
#[test]
fn coarse_grain_has_steps() {
    let rate = |kilobytes: u64| G80.steps.iter().find(|(bytes, _)| *bytes == kilobytes << 10).unwrap().1[1];
    assert!(rate(60) < 0.95 * rate(56) && rate(116) < 0.97 * rate(112));
}

#[test]
fn text_and_json() {
    let text = text(&G80);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.find("Figure 7") < text.find("Table 1, Mbit/s"));
    let json = json(&G80);
    assert_eq!(json["figure_7"][0]["status"], "tuned");
    assert_eq!(json["table_1"].as_array().unwrap().len(), 8);
    assert_eq!(
        json["kernels"][3]["by_size_8800_gt"].as_array().unwrap().len(),
        json["sizes"].as_array().unwrap().len()
    );
    assert_eq!(json["thesis"][0]["thesis_seconds"], G80.thesis[0].thesis);
    assert_eq!(json["fit"]["instructions"], G80.fit.instructions);
}
