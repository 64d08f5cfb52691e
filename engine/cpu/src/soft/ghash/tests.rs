
use super::*;

fn key_of(h: &Block) -> HashKey {
    let mut key = HashKey::blank().unwrap();
    key.set(h);
    key
}

fn carry_less(x: u64, y: u64) -> u128 {
    (0..64).fold(0, |sum, i| sum ^ ((u128::from(x) << i) * u128::from((y >> i) & 1)))
}

#[test]
fn products_have_no_carry() {
    let mut seed = 1u64;
    let mut next = || {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        seed ^ (seed >> 29)
    };
    let special = [0, 1, u64::MAX, 1 << 63, EVERY_FOURTH, EVERY_FOURTH << 3, !(u64::MAX >> 4)];
    for x in special {
        for y in special {
            assert_eq!(Factor::new(y).times(x), carry_less(x, y), "{x:#x} times {y:#x}");
        }
    }
    for _ in 0..1000 {
        let (x, y) = (next(), next());
        assert_eq!(Factor::new(y).times(x), carry_less(x, y), "{x:#x} times {y:#x}");
    }
}

#[test]
fn one_is_neutral() {
    let mut one = [0; 16];
    one[0] = 0x80;
    let block: Block = std::array::from_fn(|i| (17 * i + 3) as u8);
    let mut state = [0; 16];
    update(&key_of(&one), &mut state, &block);
    assert_eq!(state, block);
}

#[test]
fn a_new_key_leaves_no_tables_of_the_previous_one() {
    let mut key = HashKey::blank().unwrap();
    key.set(&[7; 16]);
    key.ensure_tables();
    assert!(key.powers.tables.as_flattened().iter().any(|byte| *byte != 0));
    key.set(&[9; 16]);
    assert!(key.powers.tables.as_flattened().iter().all(|byte| *byte == 0));
}
