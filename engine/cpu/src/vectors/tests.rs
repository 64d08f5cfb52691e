use super::*;

fn check<K: Kernel<Schedule = Schedule>>(kernel: Option<K>) {
    let Some(kernel) = kernel else { return };
    let mut places = [Schedule::blank()];
    kernel.expand_each(&[&[7; 32]], &mut places);
    kernel.expand_each(&[&[9; 16]], &mut places);
    let [Schedule { encrypt, rounds, .. }] = &places;
    assert_eq!(*rounds, 10);
    // SAFETY: a register is a block of bytes.
    let blocks = unsafe { &*encrypt.as_ptr().cast::<[Block; 15]>() };
    assert!(blocks[11..].as_flattened().iter().all(|byte| *byte == 0), "{}", K::NAME);
    assert!(blocks[10] != [0; 16]);
}

#[test]
fn a_shorter_key_leaves_nothing_of_a_longer_one() {
    #[cfg(target_arch = "aarch64")]
    {
        check(Armv8::detect());
        check(Armv8Sha3::detect());
    }
    #[cfg(target_arch = "x86_64")]
    {
        check(AesNi::detect());
        check(Vaes256::detect());
        check(Vaes512::detect());
    }
}
