//! Tests that the circuits of `aes.circuit`, and the shader code generated from them, compute the functions of FIPS 197.

mod shader;

use std::collections::HashMap;

use lockstep_circuit::{Circuit, aes, cheapest, parse};
use lockstep_reference::Aes;
use shader::Shader;

fn named(name: &str) -> Circuit {
    aes().into_iter().find(|circuit| circuit.name == name).unwrap()
}

/// The S-box, computed by the key expansion of the reference cipher: if the last word of the key is `00 b 00 00` and all other bytes are
/// zero, the first byte of the first new word is S(b) XOR 1.
fn sbox(b: u8) -> u8 {
    let mut key = [0; 16];
    key[13] = b;
    Aes::new(&key).round_keys()[1][0] ^ 1
}

/// The product of `a` and `b` in GF(2^8), computed bit by bit.
fn mul(mut a: u8, mut b: u8) -> u8 {
    let mut sum = 0;
    while b != 0 {
        sum ^= if b & 1 == 1 { a } else { 0 };
        a = a << 1 ^ if a & 0x80 != 0 { 0x1b } else { 0 };
        b >>= 1;
    }
    sum
}

/// A word whose bit i is bit `bit` of byte i.
fn plane(bytes: &[u8], bit: usize) -> u64 {
    bytes.iter().enumerate().fold(0, |sum, (i, b)| sum | u64::from(b >> bit & 1) << i)
}

fn digit(name: &str, index: usize) -> usize {
    usize::from(name.as_bytes()[index] - b'0')
}

/// Computes all named values of a circuit. The argument returns the value of each input by its name.
type Compute<'a> = dyn Fn(&dyn Fn(&str) -> u64) -> HashMap<String, u64> + 'a;

/// Runs a check on the circuit in `aes.circuit` and on the WGSL function that is generated from this circuit.
fn both(name: &str, check: impl Fn(&Compute<'_>)) {
    let circuit = named(name);
    check(&|input| circuit.evaluate(input).into_iter().map(|(name, value)| (name.into(), value)).collect());
    let files = lockstep_circuit::wgsl(&aes());
    let (_, text) = files.iter().find(|(file, _)| file == name).expect("a file for each circuit");
    let shader = Shader::new(text, name);
    check(&|input| shader.evaluate(input));
}

fn check_sbox(compute: &Compute<'_>, expected: impl Fn(u8) -> u8) {
    for start in (0..256).step_by(64) {
        let inputs: [u8; 64] = std::array::from_fn(|i| (start + i) as u8);
        let outputs = inputs.map(&expected);
        let values = compute(&|name| plane(&inputs, 7 - digit(name, 1)));
        for i in 0..8 {
            assert_eq!(values[format!("S{i}").as_str()], plane(&outputs, 7 - i), "bit S{i}, from {start} on");
        }
    }
}

#[test]
fn sboxes_are_equal_on_all_inputs() {
    assert_eq!([0x00, 0x53, 0xff].map(sbox), [0x63, 0xed, 0x16]);
    both("sbox", |compute| check_sbox(compute, sbox));
    let mut inverse = [0; 256];
    (0..=255).for_each(|b: u8| inverse[usize::from(sbox(b))] = b);
    both("inverse_sbox", |compute| check_sbox(compute, |b| inverse[usize::from(b)]));
}

/// Checks a circuit of a column. The expected result: the bytes of the column are substituted by `table`, the column is multiplied by the
/// circulant matrix whose first row is `factors`, and a round key is added.
fn check_column(compute: &Compute<'_>, table: [u8; 256], factors: [u8; 4]) {
    let mut state = 0x0123_4567_89ab_cdef_u64;
    let mut random = || {
        // Pseudo-random inputs (xorshift) are sufficient.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    for _ in 0..256 {
        let mut draw = || -> [[u8; 64]; 4] { std::array::from_fn(|_| std::array::from_fn(|_| random())) };
        let (input, key) = (draw(), draw());
        let values = compute(&|name| match name.as_bytes()[0] {
            b'K' => plane(&key[digit(name, 1)], digit(name, 3)),
            _ => plane(&input[digit(name, 3)], 7 - digit(name, 1)),
        });
        for row in 0..4 {
            let output: [u8; 64] = std::array::from_fn(|i| {
                (0..4).fold(key[row][i], |sum, k| {
                    sum ^ mul(factors[k], table[usize::from(input[(row + k) % 4][i])])
                })
            });
            for bit in 0..8 {
                assert_eq!(
                    values[format!("o{row}x{bit}").as_str()],
                    plane(&output, bit),
                    "row {row}, bit {bit}"
                );
            }
        }
    }
}

#[test]
fn columns_are_equal_on_random_inputs() {
    let table: [u8; 256] = std::array::from_fn(|b| sbox(b as u8));
    let mut inverse = [0; 256];
    (0..=255).for_each(|b: u8| inverse[usize::from(sbox(b))] = b);
    both("column", |compute| check_column(compute, table, [2, 3, 1, 1]));
    both("inverse_column", |compute| check_column(compute, inverse, [14, 11, 13, 9]));
}

/// Computes the whole cipher with `sbox`, `mul` and the factors of MixColumns. The result equals the oracle's, so the columns that the
/// tests expect are those of AES.
#[test]
fn columns_make_the_oracles_cipher() {
    let key: [u8; 16] = std::array::from_fn(|i| (17 * i + 3) as u8);
    let aes = Aes::new(&key);
    let keys = aes.round_keys();
    let mut state: [u8; 16] = std::array::from_fn(|i| (29 * i) as u8 ^ keys[0][i]);
    for (round, key) in keys.iter().enumerate().skip(1) {
        let moved: [u8; 16] = std::array::from_fn(|p| sbox(state[(p % 4) + 4 * ((p / 4 + p % 4) % 4)]));
        state = std::array::from_fn(|p| {
            let mixed = |k: usize| mul([2, 3, 1, 1][k], moved[p / 4 * 4 + (p % 4 + k) % 4]);
            key[p] ^ if round < 10 { (0..4).fold(0, |sum, k| sum ^ mixed(k)) } else { moved[p] }
        });
    }
    assert_eq!(state, aes.encrypt(std::array::from_fn(|i| (29 * i) as u8)));
}

#[test]
fn counts_have_not_grown() {
    let counts: Vec<_> = aes().iter().map(|c| (c.name.clone(), c.operations.len())).collect();
    let bars = [("sbox", 72), ("inverse_sbox", 78), ("column", 366), ("inverse_column", 420)];
    assert_eq!(counts.len(), bars.len());
    for ((name, count), (wanted, bar)) in counts.iter().zip(bars) {
        assert!(name == wanted && *count <= bar, "{name} has {count} operations");
    }
}

#[test]
fn invalid_text_is_refused() {
    for (text, problem) in [
        ("a = lop3(U0, U1, 0, 0x3C)", "line 1: no circuit yet"),
        ("circuit x\na = lop3(U0, U1, 0x3C)", "line 2: not an operation"),
        ("circuit x\na = lop3(U0, U1, U2, 0x3C)", "line 2: 0 must stand"),
        ("circuit x\na = lop3(U0, 0, 0, 0x3C)", "line 2: 0 must stand"),
        ("circuit x\na = lop3(U0, U1, 0, 0x3C)\na = lop3(U0, U1, 0, 0x3C)", "line 3: this name is taken"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.starts_with(problem), "{error}");
    }
}

#[test]
fn every_table_has_a_cheapest_expression() {
    for table in 0..=255u8 {
        let (text, cost) = cheapest(table, ["a", "b", "c"]);
        let operations = text.chars().filter(|c| "&|^~".contains(*c)).count();
        assert_eq!(operations, cost as usize, "{table:#04x}: {text}");
        for index in 0..8u8 {
            let value = shader::expression(&text, &|name| {
                if index & [4, 2, 1][usize::from(name.as_bytes()[0] - b'a')] != 0 { u64::MAX } else { 0 }
            });
            assert_eq!(value & 1, u64::from(table >> index & 1), "{table:#04x}: {text}");
        }
    }
    for (table, cost) in [(0xF0, 0), (0xC0, 1), (0x96, 2), (0xCA, 3), (0xE8, 4)] {
        assert_eq!(cheapest(table, ["a", "b", "c"]).1, cost, "{table:#04x}");
    }
}
