use super::*;

/// Every assignment of the secret bits of some bytes.
fn assignments(byte: Tainted) -> impl Iterator<Item = u8> {
    (0..=255u8).filter(move |value| (value ^ byte.value) & !byte.secret == 0)
}

fn samples() -> Vec<Tainted> {
    [(0x00, 0x00), (0xff, 0x00), (0x3c, 0x00), (0x5a, 0x81), (0x0f, 0x18), (0xc3, 0x40)]
        .map(|(value, secret)| Tainted { value, secret })
        .to_vec()
}

/// Checks that a result differs from the value only in secret bits, for each assignment of the secret bits of the inputs.
fn check(name: &str, operation: impl Fn(&mut Taint, Tainted, Tainted) -> Tainted) {
    for x in samples() {
        for y in samples() {
            let result = operation(&mut Taint, x, y);
            let mut seen = 0;
            for x in assignments(x) {
                for y in assignments(y) {
                    let exact = operation(&mut Taint, Taint::constant(x), Taint::constant(y));
                    assert_eq!(exact.secret, 0, "{name}");
                    seen |= exact.value ^ result.value;
                }
            }
            assert_eq!(seen & !result.secret, 0, "{name} of {x:?} and {y:?}: secret bits are missing");
        }
    }
}

#[test]
fn a_bit_that_depends_on_a_secret_is_secret() {
    check("xor", |domain, x, y| domain.xor(x, y));
    check("and", |domain, x, y| domain.and(x, y));
    check("or", |domain, x, y| domain.or(x, y));
    check("not", |domain, x, _| domain.not(x));
    for table in [0x96, 0xca, 0xe8, 0x01, 0xd8] {
        check("ternary", move |domain, x, y| domain.ternary(table, x, y, Taint::constant(0x35)));
        check("ternary", move |domain, x, y| domain.ternary(table, y, Taint::constant(0x35), x));
    }
    for count in [0, 1, 5, 7, 8, 9] {
        for shift in [Shift::Left, Shift::Right, Shift::Arithmetic] {
            check("shift", move |domain, x, y| {
                let mut lane = [x, y];
                domain.shift(&mut lane, shift, count);
                domain.xor(lane[0], lane[1])
            });
        }
    }
    check("add", |domain, x, y| {
        let mut sum = [x];
        domain.add(&[x], &[y], Flag::new(true, false), &mut sum);
        sum[0]
    });
    check("the S-box", |domain, x, _| domain.sub_byte(x, false));
    check("MixColumns", |domain, x, y| domain.mix_column([x, y, x, y], true)[2]);
    check("a table", |domain, x, y| domain.look_up(&samples_of_constants(), domain.clone().and(x, y)));
    check("select", |domain, x, y| domain.select(Flag::new(x.value & 1 == 1, x.secret & 1 == 1), x, y));
    check("carry-less multiplication", |domain, x, y| domain.carryless(&only(x), &only(y), [0, 8])[1]);
}

/// A block whose halves are zero except for their first byte.
fn only(byte: Tainted) -> [Tainted; 16] {
    std::array::from_fn(|place| if place % 8 == 0 { byte } else { Taint::constant(0) })
}

fn samples_of_constants() -> [Tainted; 16] {
    std::array::from_fn(|i| Taint::constant(17 * i as u8))
}

#[test]
fn logic_with_public_bits_is_exact() {
    let secret = Tainted::secret(0x5a);
    assert_eq!(Taint.and(secret, Taint::constant(0x0f)).secret, 0x0f);
    assert_eq!(Taint.or(secret, Taint::constant(0x0f)).secret, 0xf0);
    assert_eq!(Taint.ternary(0xff, secret, secret, secret), Taint::constant(0xff));
    // The table 0xcc returns the second operand, which is public, for all values of the secret operands.
    assert_eq!(Taint.ternary(0xcc, secret, Taint::constant(3), secret), Taint::constant(3));
}

#[test]
fn a_function_of_three_secrets_is_secret_unless_it_is_constant() {
    let [x, y, z] = [0x0f, 0x33, 0x55];
    for table in 0..=255u8 {
        let result = Taint.ternary(table, Tainted::secret(x), Tainted::secret(y), Tainted::secret(z));
        // The bits of the operands at the eight places are the eight combinations.
        let expected = (0..8).fold(0, |sum, place| {
            let index = (x >> place & 1) << 2 | (y >> place & 1) << 1 | z >> place & 1;
            sum | (table >> index & 1) << place
        });
        assert_eq!(result.value, expected, "table {table:#x}");
        assert_eq!(result.secret, if matches!(table, 0 | 0xff) { 0 } else { 0xff }, "table {table:#x}");
    }
}
