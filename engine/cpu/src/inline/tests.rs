use std::arch::is_aarch64_feature_detected;

use crate::kernel::entry::{Entry, swap_dit};
use crate::soft::{Soft, Width};

#[test]
fn the_mode_is_set_and_restored() {
    if is_aarch64_feature_detected!("dit") {
        let is_set = || {
            let before = swap_dit(true);
            swap_dit(before);
            before
        };
        let kernel = Soft::of_width(Width::Portable).unwrap();
        let original = swap_dit(false);
        let outer = Entry::of(kernel);
        assert!(is_set());
        drop(Entry::of(kernel));
        assert!(is_set(), "an inner call does not reset the mode");
        drop(outer);
        assert!(!is_set());
        swap_dit(original);
    }
}
