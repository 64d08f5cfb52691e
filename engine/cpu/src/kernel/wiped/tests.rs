
use std::mem::ManuallyDrop;

use super::*;

#[test]
fn blocks_are_wiped() {
    let mut blocks = ManuallyDrop::new(Wiped::<3>::zero());
    blocks.iter_mut().for_each(|block| *block = [7; 16]);
    // SAFETY: the value is not dropped a second time, and its bytes stay readable.
    unsafe { ManuallyDrop::drop(&mut blocks) };
    assert_eq!(**blocks, [[0; 16]; 3]);
}
