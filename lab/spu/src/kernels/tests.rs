
use zeroize::ZeroizeOnDrop;

use super::*;

/// Compiles only for types that wipe their content on drop.
fn assert_wiped(_: &impl ZeroizeOnDrop) {}

#[test]
fn values_derived_from_keys_are_wiped() {
    let keys = [[7; 16]; 11];
    for way in [Way::Plain, Way::Lookup, Way::Vperm, Way::VpermInverse, Way::Tables] {
        let cipher = way.cipher();
        assert_wiped(&cipher.key_form(&keys));
        if let Some(caching) = cipher.caching() {
            assert_wiped(&caching.rest_of_first_round(&keys, &[1; 16]));
        }
    }
}

#[test]
fn oversized_loops_are_refused() {
    let of = Loop { way: Way::Lookup, mode: Mode::Ctr, blocks: 1, overlaps: false };
    let compiled = of.compile(10, Effort::Full).unwrap();
    let mut machine = Machine::new();
    let keys = [[0; 16]; 15];
    let wrong = Refused::Keys { found: 15, expected: 11 };
    assert_eq!(compiled.load(&mut machine, &keys), Err(wrong.clone()));
    assert_eq!(compiled.load(&mut machine, &[]), Err(Refused::Keys { found: 0, expected: 11 }));
    compiled.load(&mut machine, &keys[..11]).unwrap();
    assert_eq!(compiled.run(&mut machine, &keys, &[0; 16], &mut [0; 16]), Err(wrong));
    for way in [Way::Plain, Way::Ghash, Way::GhashBits] {
        let of = Loop { way, mode: Mode::Ctr, blocks: 2, overlaps: false };
        let refused = of.compile(10, Effort::Full).err().unwrap();
        assert!(refused.starts_with("there is no loop"), "{refused}");
    }
    for len in [0, 15, MAX_RUN_BYTES + 16] {
        let refused = compiled.run(&mut machine, &keys[..11], &[0; 16], &mut vec![0; len]);
        assert_eq!(refused, Err(Refused::Data(len)));
    }
}
