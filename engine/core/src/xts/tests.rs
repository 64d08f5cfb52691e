use super::*;

#[test]
fn doubling_reduces() {
    assert_eq!(double(1), 2);
    assert_eq!(double(1 << 127), 0x87);
    assert_eq!(double((1 << 127) | 1), 0x85);
}

#[test]
fn powers_are_repeated_products() {
    let mut power = 1u128;
    for exponent in 0..2000u64 {
        assert_eq!(power_of_x(exponent), power);
        assert_eq!(times_power_of_x(1, exponent as u32), power);
        power = double(power);
    }
    // x^(2^128) = x, so x^(2^64) squared 64 times is x again.
    let mut power = times_power_of_x(power_of_x(u64::MAX), 1);
    (0..64).for_each(|_| power = times(power, power));
    assert_eq!(power, 2);
}

/// Products of all pairs of powers of x below 128. All other products are sums of these, because multiplication is
/// bilinear.
#[test]
fn products_of_all_powers_of_x() {
    for i in 0..128 {
        for j in 0..128 {
            let expected = power_of_x(u64::from(i + j));
            assert_eq!(times(1 << i, 1 << j), expected, "x^{i} x^{j}");
            assert_eq!(times_power_of_x(1 << i, j), expected, "x^{i} x^{j}");
        }
    }
}
