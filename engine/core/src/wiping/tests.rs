use super::*;

#[test]
fn exactly_the_bytes_are_zeroed() {
    for start in 0..9 {
        for len in 0..40 {
            let mut memory = [0xa5; 48];
            wipe(&mut memory[start..start + len]);
            for (i, byte) in memory.iter().enumerate() {
                let is_wiped = (start..start + len).contains(&i);
                assert_eq!(*byte, if is_wiped { 0 } else { 0xa5 }, "{start} {len} {i}");
            }
        }
    }
}
