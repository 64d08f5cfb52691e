//! Tests of the emulator of thread blocks itself.
#![cfg(feature = "emulator")]

use crate::emulation;

use emulation::{kernels, launch};

const DIVERGENCE: i32 = 4;
const SHARED_OVERRUN: i32 = 6;

#[test]
fn barriers_order_the_threads_of_a_block() {
    for threads in [1usize, 2, 31, 32, 33, 256, 1024] {
        let mut out = vec![0u32; 5 * threads];
        launch("emulator_barrier", 5, threads, 4 * threads, &out.as_mut_ptr()).unwrap();
        for (at, &found) in out.iter().enumerate() {
            let (block, i) = (at / threads, at % threads);
            let expected: usize = (1..=3).map(|step| (i + step) % threads + 1000 * block).sum();
            assert_eq!(found as usize, expected, "{threads} threads, thread {i} of block {block}");
        }
    }
}

#[test]
fn lanes_exchange_values() {
    let mut out = vec![0u32; 4 * 64];
    launch("emulator_warp", 1, 64, 0, &out.as_mut_ptr()).unwrap();
    for (i, words) in out.as_chunks::<4>().0.iter().enumerate() {
        let i = i as u32;
        let warp = i / 32 * 32;
        assert_eq!(words[0], i ^ 1);
        assert_eq!(
            words[1],
            (0..32).filter(|lane| (warp + lane).is_multiple_of(3)).map(|lane| 1 << lane).sum::<u32>()
        );
        assert_eq!(words[2], if i % 8 < 4 { i + 4 } else { i });
        assert_eq!(words[3], if i % 32 < 16 { warp + 15 } else { warp + 16 });
    }
}

#[test]
fn parameters_have_cudas_layout() {
    #[repr(C)]
    struct Parameters {
        first: u8,
        second: u64,
        third: u32,
        out: *mut u64,
    }
    let mut out = 0;
    let parameters = Parameters { first: 200, second: 1 << 40, third: 70000, out: &mut out };
    launch("emulator_parameters", 1000, 64, 0, &parameters).unwrap();
    assert_eq!(out, 1000 * (200 + (1 << 40) + 70000));
}

#[test]
fn divergence_is_an_error_not_a_hang() {
    for (kind, threads) in [(0u32, 2), (1, 64), (2, 32)] {
        let (code, words) = launch("emulator_divergence", 3, threads, 0, &kind).unwrap_err();
        assert_eq!(code, DIVERGENCE, "{words}");
        assert!(words.contains("selftest.cpp"), "{words}");
    }
    // The failure does not affect the next launch.
    barriers_order_the_threads_of_a_block();
}

#[test]
fn writing_over_the_end_of_shared_memory_is_an_error() {
    launch("emulator_overrun", 1, 32, 0, &0u32).unwrap();
    let (code, words) = launch("emulator_overrun", 1, 32, 0, &1u32).unwrap_err();
    assert_eq!(code, SHARED_OVERRUN, "{words}");
}

#[test]
fn wrong_launches_are_refused() {
    assert_eq!(launch("no_such", 1, 32, 0, &0u32).unwrap_err().0, 1);
    assert_eq!(launch("emulator_overrun", 1, 32, 0, &0u8).unwrap_err().0, 2);
    assert_eq!(launch("emulator_overrun", 1, 1025, 0, &0u32).unwrap_err().0, 3);
    assert_eq!(launch("emulator_overrun", 0, 32, 0, &0u32).unwrap_err().0, 3);
    assert_eq!(launch("emulator_overrun", 1, 32, 228 * 1024, &0u32).unwrap_err().0, 3);
}

#[test]
fn names_are_unique() {
    let mut names = kernels();
    names.sort();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}
