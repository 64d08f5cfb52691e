//! The self-test of inline kernels.

use lockstep_cpu::inline::is_proven;
use lockstep_cpu::inline::proof::{TAGS, passes_known_answers, text};

use super::*;

#[test]
fn every_kernel_passes_its_self_test() {
    for kernel in InlineKernel::all() {
        assert!(is_proven(kernel) && is_proven(kernel), "{}", kernel.name());
    }
}

#[test]
fn another_key_and_other_tags_fail() {
    for kernel in InlineKernel::all() {
        let passes = |key: &[u8], tags: &[u128; 4]| passes_known_answers(kernel, key, tags).unwrap();
        let (text, tags) = (text(), TAGS.first_chunk().unwrap());
        assert!(passes(&text[..16], tags), "{}", kernel.name());
        assert!(!passes(&[1; 16], tags), "{}", kernel.name());
        for changed in 0..tags.len() {
            let mut tags = *tags;
            tags[changed] ^= 1;
            assert!(!passes(&text[..16], &tags), "{}: tag {changed}", kernel.name());
        }
    }
}
