use super::*;

#[test]
fn the_rates_of_table_7_4_are_those_of_its_times() {
    for (milliseconds, rate) in TABLE_7_4.into_iter().zip(TABLE_7_4_RATES) {
        // A run has 1.0 million bytes. The thesis truncates the rates to whole numbers.
        assert!((1e6 / milliseconds - rate).abs() < 1.0, "{milliseconds}");
    }
}

#[test]
fn a_block_takes_the_same_clocks_with_any_number_of_qpus() {
    for (milliseconds, qpus) in TABLE_7_4.into_iter().zip(1..) {
        let clocks = milliseconds * 250e3 * f64::from(qpus) / f64::from(VECTORS);
        // Half a millisecond of rounding is 0.4 % of the shortest time.
        assert!((clocks / 6732.0 - 1.0).abs() < 0.006, "{qpus}: {clocks}");
    }
}
