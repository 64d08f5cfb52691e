use super::*;

#[test]
fn rates_are_of_the_mean_time() {
    let point = point("a", Pass::Ctr, 16, 6_000_000, &[1.0, 3.0]);
    assert_eq!((point.rate, point.spread), (3.0, (2.0, 6.0)));
}

#[test]
fn the_chapter_has_batches_of_a_mebibyte() {
    let conditions = Conditions::of_the_chapter();
    assert!(conditions.batches.contains(&paper::BATCH));
    assert_eq!((conditions.batches[0], conditions.runs), (4096, 10));
}
