use lockstep_core::KeySize;
use lockstep_core::work::{FusedAead, Operation, Pass};
use lockstep_gpu_host::Kind;

use super::family::{BITSLICE, BITSLICE_LANE, TABLE, TABLE_SMALL, TBOXES};
use super::*;
use crate::machine::Limits;
use crate::machine::emulator::{constant, kernels};

const ALL: Limits = Limits { multiprocessors: 1, shared: 1 << 20, threads: 1024, tensor_bits: true };

/// Every function that this module names exists in the kernels.
#[test]
fn functions_exist() {
    let there = kernels();
    for family in &FAMILIES {
        for size in KeySize::ALL {
            assert!(there.contains(family.expand(size).name), "{}", family.expand(size).name);
            for tiling in family.tilings() {
                let fused = FusedAead::ALL.into_iter().filter(|&fused| family.does_fused(fused));
                let passes = Pass::ALL.into_iter().filter(|&pass| family.does(pass));
                for operation in passes.map(Operation::Pass).chain(fused.map(Operation::Fused)) {
                    let part = Part::needed_by(Kind::of(operation).unwrap());
                    let name = tiling.entry(part, size).name;
                    assert!(there.contains(name), "{name}");
                }
            }
        }
    }
}

#[test]
fn helpers_exist() {
    use helper::*;
    let there = kernels();
    for entry in [
        CHAIN_KEYS,
        CHAIN_ENCRYPT,
        CHAIN_DECRYPT,
        GHASH_POWERS,
        GHASH_TILES,
        GHASH_EACH,
        GHASH_MATRICES,
        GHASH_TENSOR_TILES,
        CARRY_LESS_POWERS,
        CARRY_LESS_TILES,
        CARRY_LESS_EACH,
        CARRY_LESS_PRODUCTS,
        GCM_TAGS,
        OCB_KEYS,
        OCB_BEGIN,
        OCB_SUM,
        OCB_TAGS,
        ZERO_REFUSED,
        GCM_MESSAGES,
        UNIFORM_TILES,
        EDGES,
        SET_STATES,
        TABLE_SEGMENTS,
        TABLE_RESULTS,
        GATHER,
    ] {
        assert!(there.contains(entry.name), "{}", entry.name);
    }
}

/// The constants that the kernels export equal those of this module.
#[test]
fn constants_agree() {
    let exported = |name: &str| constant(name).unwrap_or_else(|| panic!("nothing exports {name}"));
    for size in KeySize::ALL {
        for family in ["bitslice", "table"] {
            let name = format!("{family}_schedule_bytes_{}", size.bits());
            assert_eq!(exported(&name), FAMILIES[0].schedule(size) as u64, "{name}");
        }
    }
    assert_eq!(exported("chain_messages"), CHAIN_MESSAGES as u64);
    assert_eq!(exported("chain_lanes"), CHAIN_LANES as u64);
    assert_eq!(exported("ghash_tile_blocks"), GHASH_TILE_BLOCKS);
    assert_eq!(exported("ghash_block_tiles"), u64::from(GHASH_WARPS));
    assert_eq!(exported("ghash_levels"), GHASH_LEVELS as u64);
    assert_eq!(exported("ghash_rows_bytes"), GHASH_ROWS as u64);
    assert_eq!(exported("ghash_matrices_bytes"), GHASH_MATRICES_BYTES as u64);
    assert_eq!(exported("ghash_matrices_threads"), GHASH_MATRICES_THREADS);
    assert_eq!(exported("ocb_masks_bytes"), OCB_MASKS as u64);
    for (name, tiling) in [("bitslice", BITSLICE), ("bitslice_lane", BITSLICE_LANE)] {
        assert_eq!(exported(&format!("{name}_tile_bytes")), tiling.tile as u64);
        assert_eq!(exported(&format!("{name}_tile_threads")), u64::from(tiling.tile_threads));
        assert_eq!(exported(&format!("{name}_block_tiles")), u64::from(tiling.block_tiles));
    }
    for (name, tiling) in [("table", TABLE), ("table_small", TABLE_SMALL)] {
        assert_eq!(exported(&format!("{name}_tile_bytes")), tiling.tile as u64);
        assert_eq!(exported(&format!("{name}_threads")), u64::from(tiling.tile_threads * tiling.block_tiles));
        assert_eq!(exported(&format!("{name}_shared_bytes")), u64::from(tiling.shared));
    }
    assert_eq!(exported("tbox_bytes"), u64::from(TBOXES));
    for (grain, family) in [("fine", &FAMILIES[2]), ("coarse", &FAMILIES[3])] {
        let options = LaunchOptions { threads: Some(64), ..LaunchOptions::default() };
        let tiling = family.tiling(&ALL, &options, 1, 1 << 20);
        assert_eq!(exported(&format!("{grain}_thread_bytes")) * 64, tiling.tile as u64);
        assert_eq!(exported(&format!("{grain}_state_bytes")) * 64, u64::from(tiling.shared - TBOXES));
    }
}

/// The option `fine_below` selects coarse or fine grain by the number of bytes of a launch, for any division of the bytes into segments.
#[test]
fn small_launches_have_fine_grain_on_request() {
    let coarse = &FAMILIES[3];
    let entry = |options: &LaunchOptions, segments, bytes| {
        coarse.tiling(&ALL, options, segments, bytes).entry(Part::Ctr, KeySize::Aes128).name
    };
    let (plain, option) =
        (LaunchOptions::default(), LaunchOptions { fine_below: Some(2), ..Default::default() });
    assert_eq!(entry(&plain, 1, 16), "coarse_shared_ctr_128");
    assert_eq!(entry(&option, 1, 2047), "fine_shared_ctr_128");
    assert_eq!([1, 100].map(|segments| entry(&option, segments, 2048)), ["coarse_shared_ctr_128"; 2]);
    assert_eq!(
        FAMILIES[2].tiling(&ALL, &option, 1, 4096).entry(Part::Ctr, KeySize::Aes128).name,
        "fine_shared_ctr_128"
    );
}

/// If the option `fine_below` is set, the self-test runs both grains at each size, with the other options of the device.
#[test]
fn the_self_test_has_options_of_both_grains() {
    let options = LaunchOptions { fine_below: Some(2048), threads: Some(64), ..Default::default() };
    for bytes in [16, 34_000] {
        let of = |options: &LaunchOptions| FAMILIES[3].tiling(&ALL, options, 1, bytes);
        let tilings: Vec<Tiling> = options.of_each_grain().iter().map(of).collect();
        let names: Vec<_> =
            tilings.iter().map(|tiling| tiling.entry(Part::Ctr, KeySize::Aes128).name).collect();
        assert_eq!(names, ["coarse_shared_ctr_128", "fine_shared_ctr_128"]);
        assert!(tilings.iter().all(|tiling| tiling.tile_threads == 64));
    }
    assert!(LaunchOptions::default().of_each_grain().is_empty());
}

#[test]
fn small_shared_memory_selects_the_small_table() {
    let limits = Limits { multiprocessors: 46, shared: 99 * 1024, threads: 1024, tensor_bits: true };
    let tiling = FAMILIES[1].tiling(&limits, &LaunchOptions::default(), 1, 1 << 20);
    assert_eq!(tiling.entry(Part::Ctr, KeySize::Aes128).name, "table_small_ctr_128");
    assert_eq!(tiling.shape(&limits, 1 << 20).unwrap().grid, 46);
    assert_eq!(tiling.shape(&limits, 17).unwrap().grid, 17);
    assert!(BITSLICE.shape(&limits, 1 << 31).is_none());
}
