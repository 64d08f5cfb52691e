//! The kernels of kernels/table and kernels/papers, each compared with the oracle, on the emulator.
#![cfg(feature = "emulator")]

use crate::emulation;

use emulation::constant;
use emulation::passes::{Family, check, expanded, key, pieces, wrapping};
use lockstep_reference::Aes;

fn check_family(family: Family, passes: &[&str]) {
    for bits in [128, 192, 256] {
        for &pass in passes {
            let pieces = pieces(pass, family.tile_bytes);
            check(family, pass, bits, &pieces, false, None);
            check(family, pass, bits, &pieces, true, None);
            if pass.starts_with("ctr") {
                check(family, pass, bits, &wrapping(family.tile_bytes), true, None);
            }
        }
        // The kernels must work with a grid that is smaller or larger than the number of tiles.
        for grid in [1, 2, 1000] {
            check(family, passes[0], bits, &pieces(passes[0], family.tile_bytes), true, Some(grid));
        }
        check(family, passes[0], bits, &pieces(passes[0], family.tile_bytes)[..1], true, Some(1));
    }
}

const ALL_PASSES: [&str; 8] = [
    "ecb_encrypt",
    "ecb_decrypt",
    "ctr",
    "ctr32",
    "cbc_decrypt",
    "cfb_decrypt",
    "xts_encrypt",
    "xts_decrypt",
];

#[test]
fn table_runs_every_pass() {
    check_family(Family::table("table"), &ALL_PASSES);
}

#[test]
fn the_small_table_runs_every_pass() {
    check_family(Family::table("table_small"), &ALL_PASSES);
}

#[test]
fn the_four_kernels_of_the_cuda_paper() {
    for name in ["coarse_shared", "coarse_constant", "fine_shared", "fine_constant"] {
        for threads in [8, 32, 40, 256, 512] {
            check_family(Family::of_the_paper(name, threads), &["ctr", "ecb_encrypt", "ecb_decrypt"]);
        }
    }
}

#[test]
fn the_kernel_of_the_thesis() {
    for (threads, option) in [(8, 1), (64, 10), (256, 10), (512, 3)] {
        check_family(Family::of_the_thesis(threads, option), &["ctr", "ecb_encrypt"]);
    }
}

/// The first half of a schedule has the round keys for encryption, which equal the round keys of the oracle (FIPS
/// 197, section 5.2).
#[test]
fn expansion_equals_the_standard() {
    for bits in [128usize, 192, 256] {
        let size = constant(&format!("table_schedule_bytes_{bits}"));
        for count in [1usize, 33, 70] {
            let keys: Vec<u8> = (0..count).flat_map(|index| key(bits, index)).collect();
            let mut schedules = expanded("table", bits, &keys, 3);
            for (index, schedule) in schedules.bytes().chunks(size).enumerate() {
                let aes = Aes::new(&key(bits, index));
                assert_eq!(schedule[..size / 2], *aes.round_keys().as_flattened());
            }
        }
    }
}
