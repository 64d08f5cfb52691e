use super::*;

/// A suite fails if the rate of a contender exceeds the limit. It does not fail if the excess is within the tolerance or within the
/// spread of the rounds, or if the calls are short.
#[test]
fn a_contender_above_the_limit_is_an_error() {
    let outcome = |size: usize, ratio: f64, spread: f64| {
        let one = |name: &str, median: f64| {
            let rate = Rate { median, least: median * (1.0 - spread), most: median * (1.0 + spread) };
            Measured { name: name.into(), rate, ..Measured::default() }
        };
        let measured = vec![one("cpu/soft", ratio * 1e9), one(limit::NAME, 1e9)];
        Outcome { work: "ctr-128".into(), shape: Shape::one(size), measured, kernel: "" }
    };
    for (size, ratio, spread, is_wrong) in [
        (1 << 14, 0.9, 0.0, false),
        (1 << 14, 1.02, 0.0, false),
        (1 << 14, 1.04, 0.01, true),
        (1 << 14, 1.04, 0.05, false),
        (1 << 13, 1.04, 0.01, false),
    ] {
        let outcome = outcome(size, ratio, spread);
        let checked = outcome.check_limit(&outcome.measured);
        assert_eq!(checked.is_err(), is_wrong, "{size} {ratio} {spread}");
        assert!(
            outcome.ratio_to_limit(&outcome.measured[0]).is_some_and(|found| (found - ratio).abs() < 1e-9)
        );
        if let Err(error) = checked {
            assert_eq!(
                error.to_string(),
                "ctr-128 at 16 KiB: cpu/soft has 1.04 times the speed of the limit, which is wrong: report this"
            );
        }
    }
}
