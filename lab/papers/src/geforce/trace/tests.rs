use super::*;
use lockstep_core::Key;

fn key(bytes: &[u8]) -> Key {
    Key::new(bytes).unwrap()
}

#[test]
fn the_trace_ends_in_the_ciphertext_of_fips_197() {
    // FIPS 197, appendix C.1, and appendix B.
    let counting: [u8; 16] = std::array::from_fn(|i| i as u8);
    let (lookups, ciphertext) =
        trace(counting.map(|byte| byte * 0x11), key(&counting).round_keys().as_blocks());
    assert_eq!(u128::from_be_bytes(ciphertext), 0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a);
    assert_eq!(lookups.len(), LOOKUPS);
    let of_appendix_b = 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c_u128.to_be_bytes();
    let plaintext = 0x3243_f6a8_885a_308d_3131_98a2_e037_0734_u128.to_be_bytes();
    let (_, ciphertext) = trace(plaintext, key(&of_appendix_b).round_keys().as_blocks());
    assert_eq!(u128::from_be_bytes(ciphertext), 0x3925_841d_02dc_09fb_dc11_8597_196a_0b32);
}

#[test]
fn lookups_are_counted_by_step() {
    let (lookups, _) = trace([0x5a; 16], key(&[7; 16]).round_keys().as_blocks());
    let count = |step| lookups.iter().filter(|lookup| lookup.step == step).count();
    assert_eq!(Step::ALL.map(count), [176, 160, 144, 576]);
    // The steps are in the order of the shader, and each lookup after the first 16 depends on a previous result.
    let steps: Vec<Step> = lookups[..52].iter().map(|lookup| lookup.step).collect();
    assert_eq!(steps[..16], [Step::Key; 16]);
    assert_eq!(steps[16..32], [Step::Sbox; 16]);
    assert_eq!(steps[32..36], [Step::Xtime; 4]);
    assert_eq!(steps[36..52], [Step::Mix; 16]);
    assert_eq!(lookups[16].x, lookups[0].value());
    // The first sum of MixColumns is 2 a0 + a3 + a2 + 2 a1 + a1, computed from left to right.
    let a: Vec<u8> = lookups[32..36].iter().map(|lookup| lookup.x).collect();
    let sums: Vec<(u8, u8)> = lookups[36..40].iter().map(|lookup| (lookup.x, lookup.y)).collect();
    let first = xtime(a[0]);
    let second = first ^ a[3];
    let third = second ^ a[2];
    assert_eq!(sums, [(first, a[3]), (second, a[2]), (third, xtime(a[1])), (third ^ xtime(a[1]), a[1])]);
}

#[test]
fn larger_keys_take_more_lookups() {
    for (bytes, rounds) in [(24, 12), (32, 14)] {
        let key = key(&vec![1; bytes]);
        let (lookups, _) = trace([0; 16], key.round_keys().as_blocks());
        assert_eq!(lookups.len(), 16 * (rounds + 1) + 16 * rounds + 80 * (rounds - 1));
    }
}
