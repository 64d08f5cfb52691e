
use super::*;

#[test]
fn patterns_have_their_properties() {
    assert_eq!(pattern(0, 300)[254..258], [254, 255, 0, 1]);
    assert!(pattern(1, 9).iter().all(|byte| *byte == 0xaa));
    let increasing = pattern(2, 100_000);
    assert!(increasing[..1000].iter().all(|byte| *byte < 3));
    assert!(increasing[99_000..].iter().any(|byte| *byte > 250));
    assert!(pattern(2, 0).is_empty() && pattern(3, 64) != pattern(3, 64));
}

#[test]
fn differences_are_seen_beyond_the_spread() {
    let rate = |median, half| Rate { median, least: median - half, most: median + half };
    let (difference, spread) = compare(&[rate(10.0, 0.5), rate(9.8, 0.5), rate(10.1, 0.2)]);
    assert!(difference <= spread && (difference - 0.03 / 1.01).abs() < 1e-9, "{difference} {spread}");
    let (difference, spread) = compare(&[rate(10.0, 0.1), rate(9.0, 0.1)]);
    assert!(difference > spread);
}
