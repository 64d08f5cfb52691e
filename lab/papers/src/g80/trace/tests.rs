use super::*;
use crate::g80::rules::{global_bytes, shared_passes};

fn kinds(half_warp: &HalfWarp) -> [usize; 3] {
    [AccessKind::Lookup, AccessKind::Load, AccessKind::Store]
        .map(|kind| half_warp.iter().filter(|one| one.kind == kind).count())
}

#[test]
fn half_warps_of_the_paper_s_kernels() {
    for (kernel, lookups, lanes_per_block) in [("cuda/coarse-shared", 160, 1), ("cuda/fine-constant", 40, 4)]
    {
        for threads in [64, 8] {
            let half_warps = trace(kernel, threads, Pass::Ctr, 8192).unwrap();
            let lanes = threads.min(16) as usize;
            assert_eq!(half_warps.len(), 512 * lanes_per_block / lanes);
            for half_warp in &half_warps {
                assert_eq!(kinds(half_warp), [lookups, 1, 1]);
                assert!(half_warp.iter().all(|one| one.addresses.len() == lanes));
            }
        }
    }
}

/// The counters of a half-warp differ in one byte only, unless there is a carry. So the lookups of round 1 of CTR read few different words.
#[test]
fn the_first_round_of_ctr_has_few_conflicts() {
    let half_warps = trace("cuda/coarse-shared", 64, Pass::Ctr, 8192).unwrap();
    let passes = |half_warp: &HalfWarp| -> Vec<u32> {
        let lookups = half_warp.iter().filter(|one| one.kind == AccessKind::Lookup);
        lookups.map(|one| shared_passes(&one.addresses)).collect()
    };
    let all: Vec<Vec<u32>> = half_warps.iter().map(passes).collect();
    let without = all.iter().filter(|passes| passes[..16].iter().all(|passes| *passes == 1)).count();
    // Two of the 32 half-warps have a carry within their 16 counters.
    assert_eq!((all.len(), without), (32, 30));
    // From round 4 on, the state is like random bytes, so lookups have conflicts.
    assert!(all.iter().all(|passes| passes[48..].iter().sum::<u32>() > 2 * 112));
}

#[test]
#[should_panic(expected = "a half-warp diverges")]
fn a_thread_with_more_accesses_diverges() {
    let access = |thread, address| Access { block: 0, thread, kind: AccessKind::Lookup, bytes: 4, address };
    half_warps(&[access(0, 0), access(1, 4), access(1, 8)]);
}

#[test]
fn accesses_to_global_memory() {
    let bytes = |half_warp: &HalfWarp, kind| {
        let one = half_warp.iter().find(|one| one.kind == kind).unwrap();
        global_bytes(&one.addresses, u64::from(one.bytes))
    };
    // Accesses of coarse grain coalesce. Loads of fine grain do not, because four threads load the same 16 bytes.
    let coarse = trace("cuda/coarse-shared", 64, Pass::Ctr, 8192).unwrap();
    assert_eq!([AccessKind::Load, AccessKind::Store].map(|kind| bytes(&coarse[3], kind)), [256, 256]);
    let fine = trace("cuda/fine-shared", 64, Pass::Ctr, 8192).unwrap();
    assert_eq!([AccessKind::Load, AccessKind::Store].map(|kind| bytes(&fine[3], kind)), [512, 64]);
    // Threads of the thesis's kernel access data that are 160 bytes apart, and single bytes of the S-box. Neither kind of access coalesces.
    let thesis = trace("cuda/global-sbox", 64, Pass::EcbEncrypt, 64 * 160).unwrap();
    assert_eq!(thesis.len(), 4 * BLOCKS_PER_THREAD as usize);
    assert_eq!(kinds(&thesis[5]), [160, 1, 1]);
    assert!(thesis[5].iter().all(|one| global_bytes(&one.addresses, u64::from(one.bytes)) == 512));
}
