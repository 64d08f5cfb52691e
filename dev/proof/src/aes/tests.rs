use super::*;

#[test]
fn the_constants_are_those_of_the_example_in_appendix_b_of_fips_197() {
    assert_eq!(sub_byte(0x19, false), 0xd4);
    assert_eq!(mix_column([0xd4, 0xbf, 0x5d, 0x30], false), [0x04, 0x66, 0x81, 0xe5]);
    for byte in 0..=255 {
        assert_eq!(sub_byte(sub_byte(byte, false), true), byte);
        let column = [byte, 3, byte ^ 0x5a, 0x99];
        assert_eq!(mix_column(mix_column(column, false), true), column);
    }
}
