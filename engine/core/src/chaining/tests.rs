
use super::*;

#[test]
fn chaining_states_advance() {
    let ones = [0xff; 16];
    assert_eq!(ChainingState::Keep.after(ones, 99, None), ones);
    assert_eq!(ChainingState::Counter.after(ones, 17, None)[15], 1);
    let mut low = ones;
    low[12..].copy_from_slice(&[0, 0, 0, 1]);
    assert_eq!(ChainingState::Counter32.after(ones, 17, None), low);
    let mut first = ones;
    first[..4].copy_from_slice(&[1, 0, 0, 0]);
    assert_eq!(ChainingState::CounterLittle32.after(ones, 17, None), first);
    assert_eq!(ChainingState::LastCiphertext.after(ones, 15, None), ones);
    assert_eq!(ChainingState::LastCiphertext.after(ones, 16, Some(low)), low);
}
