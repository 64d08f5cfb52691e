use lockstep::hazmat::inline::{InlineKernel, InlineKey};

use super::*;
use crate::algorithm::{ALGORITHMS, Algorithm};
use crate::cipher::{Cipher, Common, Ctr, Gcm};
use crate::instance::Instance;
use crate::libcrypto::Buffers;
use crate::libcrypto::core::Core;

const KEY: [u8; 32] = [0x42; 32];

fn instance() -> &'static Instance {
    let settings = |name: &str| (name == "LOCKSTEP_AHEAD").then(|| "on".into());
    Box::leak(Instance::new(Core::none(), settings).unwrap())
}

fn aes_256_ctr() -> &'static Algorithm {
    ALGORITHMS.iter().find(|algorithm| algorithm.name() == "AES-256-CTR").unwrap()
}

fn common(instance: &'static Instance, algorithm: &'static Algorithm) -> Common {
    Common::new(instance, algorithm)
}

fn started(instance: &'static Instance, iv: &Block) -> Ctr {
    let mut context = Ctr::new(common(instance, aes_256_ctr()));
    context.init(true, Some(&KEY), Some(iv)).unwrap();
    context
}

fn uses_pool(context: &Ctr) -> bool {
    context.ahead.as_ref().is_some_and(|ahead| ahead.member.is_some())
}

fn apply(context: &mut Ctr, data: &mut [u8]) {
    let len = data.len();
    assert_eq!(context.update(Buffers::in_place_of(data)), Ok(len));
}

fn expected(iv: &Block, len: usize) -> Vec<u8> {
    let mut data = vec![0; len];
    let key = InlineKey::new(InlineKernel::best(), &KEY).unwrap();
    key.ctr(&mut iv.clone(), Span::in_place(&mut data));
    data
}

/// A fixed sequence of update sizes up to a limit.
fn sizes(most: usize) -> impl Iterator<Item = usize> {
    let mut state = 12345usize;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % (most + 1)
    })
}

fn run_in(context: &mut Ctr, data: &mut [u8], sizes: impl Iterator<Item = usize>) {
    let mut rest = data;
    for size in sizes {
        let (now, later) = rest.split_at_mut(size.min(rest.len()));
        apply(context, now);
        rest = later;
        if rest.is_empty() {
            return;
        }
    }
}

#[test]
fn any_split_gives_the_same_output() {
    let instance = instance();
    // The counter wraps around.
    let iv = [0xFF; 16];
    let expected = expected(&iv, 3 << 20);
    for most in [15, 16, 100, 4096, 70_000] {
        let mut data = vec![0; if most < 1000 { 300_000 } else { expected.len() }];
        let len = data.len();
        run_in(&mut started(instance, &iv), &mut data, sizes(most));
        assert!(data == expected[..len], "updates of up to {most}");
    }
    let mut data = vec![0; expected.len()];
    run_in(&mut started(instance, &iv), &mut data, std::iter::repeat(4096));
    assert!(data == expected);
    instance.shut_down();
}

#[test]
fn only_consecutive_small_updates_use_the_pool() {
    let instance = instance();
    let mut context = started(instance, &[7; 16]);
    for _ in 0..MIN_RUN {
        apply(&mut context, &mut [0; 4096]);
        assert!(!uses_pool(&context));
    }
    apply(&mut context, &mut [0; 4096]);
    assert!(uses_pool(&context));
    context.init(true, None, Some(&[8; 16])).unwrap();
    assert!(!uses_pool(&context), "a new IV starts a new run");
    instance.shut_down();
}

#[test]
fn new_ivs_copies_and_new_positions_do_not_use_old_keystream() {
    let instance = instance();
    let (first, second) = ([1; 16], [2; 16]);
    let mut context = started(instance, &first);
    let mut data = vec![0; 200_000];
    run_in(&mut context, &mut data, std::iter::repeat(4096));
    assert!(data == expected(&first, 200_000));
    // The copy starts at the position of the original and is then independent of the original.
    let mut copy = context.duplicate().unwrap()();
    let after = &expected(&first, 400_000)[200_000..];
    for context in [&mut context, &mut copy] {
        let mut data = vec![0; 200_000];
        run_in(context, &mut data, std::iter::repeat(4096));
        assert!(data == after);
    }
    context.init(true, None, Some(&second)).unwrap();
    let mut data = vec![0; 200_000];
    run_in(&mut context, &mut data, std::iter::repeat(5000));
    assert!(data == expected(&second, 200_000));
    instance.shut_down();
}

#[test]
fn many_contexts_on_many_threads() {
    let instance = instance();
    std::thread::scope(|scope| {
        for thread in 0..6u8 {
            scope.spawn(move || {
                // There are more contexts at the same time than the pool accepts.
                let mut contexts: Vec<_> = (0..20u8)
                    .map(|i| ([thread * 20 + i; 16], Vec::new()))
                    .map(|(iv, data)| (started(instance, &iv), iv, data))
                    .collect();
                for _ in 0..20 {
                    for (context, _, data) in &mut contexts {
                        let mut piece = [0; 4096];
                        apply(context, &mut piece);
                        data.extend_from_slice(&piece);
                    }
                }
                for (_, iv, data) in &contexts {
                    assert!(*data == expected(iv, data.len()));
                }
            });
        }
    });
    let keystream_pool = instance.keystream_pool.as_ref().unwrap();
    // Only the pool and the thread of the worker have a reference.
    assert_eq!(Arc::strong_count(keystream_pool.worker()), 2, "all places are freed");
    instance.shut_down();
}

#[test]
fn unused_keystream_is_freed() {
    let instance = instance();
    let mut context = started(instance, &[3; 16]);
    run_in(&mut context, &mut vec![0; 100_000], std::iter::repeat(4096));
    let job = Arc::clone(&context.ahead.as_ref().unwrap().member.as_ref().unwrap().job);
    drop(context);
    let state = lock(&job.state);
    assert!(state.ended && state.ready.is_empty() && state.spare.is_empty());
    drop(state);
    instance.shut_down();
    // The worker has dropped its reference to the job, so that the key is wiped with the last reference.
    assert_eq!(Arc::strong_count(&job), 1);
}

#[test]
fn gcm_uses_the_pool_and_its_counter_wraps_after_32_bits() {
    let algorithm = |name| ALGORITHMS.iter().find(|algorithm| algorithm.name() == name).unwrap();
    let instance = instance();
    // With an IV that is not 12 bytes long, the counter can start at any value.
    for seed in 0..20u8 {
        let run = |instance: &'static Instance| {
            let mut context = Gcm::new(common(instance, algorithm("AES-256-GCM")));
            context.init(true, Some(&KEY), Some(&[seed; 16])).unwrap();
            context.aad(b"header").unwrap();
            let mut data = vec![seed; 150_000];
            for piece in data.chunks_mut(4096 + usize::from(seed % 3)) {
                context.update(Buffers::in_place_of(piece)).unwrap();
            }
            context.finish(Buffers::in_place_of(&mut [])).unwrap();
            (data, context.tag)
        };
        let plain = Box::leak(Instance::new(Core::none(), |_| None).unwrap());
        assert!(run(instance) == run(plain));
    }
    // The counter wraps around. The output is compared with keystream that is computed inline.
    let key = ContextKey::new(&instance.resources, &KEY, false).unwrap();
    let mut ahead = KeystreamAhead::new(Pass::Ctr32);
    let start = (0xFFu128 << 120 | u128::from(u32::MAX - 1000)).to_be_bytes();
    let (mut counter, mut data) = (start, vec![0; 64 * 1024]);
    for piece in data.chunks_mut(4096) {
        let keystream_pool = instance.keystream_pool.as_ref().unwrap();
        if let Some(rest) =
            ahead.apply(keystream_pool, key.with(&instance.resources), &mut counter, Span::in_place(piece))
        {
            key.run_inline(Pass::Ctr32, &mut counter, rest);
        }
    }
    // The job outlives the key of the context, which is wiped in its own memory.
    let job = &ahead.member.as_ref().unwrap().job;
    assert_eq!(job.key.inline.bytes(), KEY);
    assert_ne!(job.key.inline.bytes().as_ptr(), key.inline.bytes().as_ptr());
    let (mut expected, mut after) = (vec![0; data.len()], start);
    key.inline.ctr32(&mut after, Span::in_place(&mut expected));
    assert!(data == expected && counter == after);
    instance.shut_down();
}
