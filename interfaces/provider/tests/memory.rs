//! Out-of-memory tests. In each run, one allocation of the provider fails, at any point of any call on a context. The
//! call must return the reason "out of memory", leak nothing, and succeed when it is repeated with memory available.
//!
//! If an allocation fails that Rust treats as infallible, Rust aborts the process, and with it the program that has
//! loaded the provider. So the calls are made in a child process, and if it aborts, the test reports where. The test
//! does not cover loading the provider, which comes before any data; the self-test at a kernel's first use; work above
//! the threshold, which opens devices; and updates with keystream computed ahead, whose thread and queues use
//! infallible allocations.

mod fake_core;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::process::{Command, Stdio};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

use fake_core::{Cipher, Context, Core, Param, Provider, Refused};
use openssl::cipher_ctx::CipherCtx;

/// The system's allocator, with injected failures.
struct DenyingAllocator;

/// The allocation state of a thread.
#[derive(Clone, Copy)]
struct AllocationState {
    /// True while allocations are counted.
    counts: bool,
    /// Number of allocations that succeed before one fails; after that all succeed.
    left: usize,
    denied: bool,
}

thread_local! {
    static STATE: Cell<AllocationState> = const { Cell::new(AllocationState { counts: false, left: 0, denied: false }) };
}

/// Bytes that are allocated.
static LIVE: AtomicIsize = AtomicIsize::new(0);
/// The maximum of `LIVE`.
static MAX_LIVE: AtomicIsize = AtomicIsize::new(0);

/// True if this allocation must fail.
fn denies() -> bool {
    let mut scarcity = STATE.get();
    if !scarcity.counts || scarcity.denied {
        return false;
    }
    scarcity.denied = scarcity.left == 0;
    scarcity.left = scarcity.left.saturating_sub(1);
    STATE.set(scarcity);
    scarcity.denied
}

// SAFETY: the allocator returns memory of the system's allocator, or null, which is permitted.
unsafe impl GlobalAlloc for DenyingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if denies() {
            return null_mut();
        }
        let size = layout.size() as isize;
        MAX_LIVE.fetch_max(LIVE.fetch_add(size, Relaxed) + size, Relaxed);
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Relaxed);
        // SAFETY: the memory was allocated by `System.alloc` with this layout.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: DenyingAllocator = DenyingAllocator;

/// Makes the n-th allocation in calls of [`step`] fail from now on; none if n is `None`.
fn deny_allocation(n: Option<usize>) {
    STATE.set(AllocationState { counts: false, left: n.unwrap_or(0), denied: n.is_none() });
}

/// The action after a call that has failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Remedy {
    /// Repeat the call.
    Again,
    /// Create another context and restart the message.
    Anew,
}

/// Makes a call in which an allocation may fail.
fn step<T>(
    provider: &Provider<'_>,
    remedy: Remedy,
    mut call: impl FnMut() -> Result<T, Refused>,
) -> Result<T, Refused> {
    let denied_before = STATE.get().denied;
    STATE.set(AllocationState { counts: true, ..STATE.get() });
    let outcome = call();
    let AllocationState { denied, .. } = STATE.get();
    STATE.set(AllocationState { counts: false, ..STATE.get() });
    let reason = match outcome {
        Ok(done) => return Ok(done),
        Err(reason) => reason,
    };
    let text = provider.reason(reason).expect("a reason of the list").to_string_lossy();
    assert!(denied && !denied_before, "the call failed although no allocation did: {text}");
    assert_eq!(text, "out of memory");
    match remedy {
        Remedy::Again => Ok(call().expect("the call succeeds when memory is available")),
        Remedy::Anew => Err(reason),
    }
}

const KEY: [u8; 64] = {
    let mut key = [0; 64];
    let mut i = 0;
    while i < 64 {
        key[i] = (i * 37 + 11) as u8;
        i += 1;
    }
    key
};
const IV: [u8; 16] = [0xA7; 16];

/// Maximum bytes of an update.
const MOST: usize = 112;
/// Number of updates before the context is copied. They are enough for keystream to be computed ahead.
const BEFORE: usize = 7;
/// Number of updates of the original and of the copy after that.
const AFTER: usize = 3;

/// Bytes of the tag.
fn tag_len(mode: &str) -> usize {
    match mode {
        "GCM" => 16,
        "CCM" => 12,
        _ => 0,
    }
}

/// The length and the number of the pieces of the message. CCM needs one piece.
fn pieces(mode: &str) -> (usize, usize) {
    if mode == "CCM" { (0, 1) } else { (BEFORE, AFTER) }
}

fn plain(number: usize) -> [u8; MOST] {
    std::array::from_fn(|i| (i * 7 + number * 131) as u8)
}

/// The ciphertext and tag of OpenSSL's default provider.
fn expected(cipher: &Cipher, piece: usize) -> (Vec<u8>, Vec<u8>) {
    let (mode, tag_len) = (cipher.mode(), tag_len(cipher.mode()));
    let theirs =
        openssl::cipher::Cipher::fetch(None, cipher.name(), Some("provider=default")).expect("it has all");
    let mut context = CipherCtx::new().expect("a context");
    context.encrypt_init(Some(&theirs), None, None).expect("it begins");
    if mode == "CCM" {
        context.set_iv_length(cipher.iv_len()).expect("12");
        context.set_tag_length(tag_len).expect("12");
    }
    let iv = &IV[..cipher.iv_len()];
    context.encrypt_init(None, Some(&KEY[..cipher.key_len()]), Some(iv)).expect("it begins");
    let mut output = Vec::new();
    let (before, after) = pieces(mode);
    for number in 0..before + after {
        context.cipher_update_vec(&plain(number)[..piece], &mut output).expect("it goes on");
    }
    context.cipher_final_vec(&mut output).expect("it ends");
    let mut tag = vec![0; tag_len];
    if tag_len > 0 {
        context.tag(&mut tag).expect("a tag");
    }
    (output, tag)
}

/// Makes all calls of a message. Returns `Err` if a call failed and the remedy is [`Remedy::Anew`].
fn message(
    provider: &Provider<'_>,
    cipher: Cipher,
    remedy: Remedy,
    scenario: &Scenario,
    (secret, tag): &(Vec<u8>, Vec<u8>),
) -> Result<(), Refused> {
    let piece = scenario.piece;
    let update = |context: &mut Context<'_>, place: &mut [u8], input: &[u8]| {
        if scenario.spares_updates {
            return context.update(place, input);
        }
        step(provider, remedy, || context.update(place, input))
    };
    let mode = cipher.mode();
    let (key, iv) = (&KEY[..cipher.key_len()], &IV[..cipher.iv_len()]);
    let (before, after) = pieces(mode);
    let set = |context: &mut Context<'_>, name: &CStr, data_type, data: *mut c_void, len| {
        let params = [Param::new(name, data_type, data, len), Param::END];
        // SAFETY: the array has an end, and the entry is null or valid.
        unsafe { context.set(&params) }
    };

    let mut context = step(provider, remedy, || provider.context(cipher))?;
    if mode == "CCM" {
        let mut len = iv.len().to_ne_bytes();
        step(provider, remedy, || set(&mut context, c"ivlen", 2, len.as_mut_ptr().cast(), len.len()))?;
    }
    step(provider, remedy, || context.init(true, Some(key), Some(iv)))?;
    let mut output: Vec<u8> = Vec::with_capacity(secret.len() + 64);
    let mut place = [0; MOST + 16];
    for number in 0..before {
        let input = plain(number);
        let written = update(&mut context, &mut place, &input[..piece])?;
        output.extend(&place[..written]);
    }
    let duplicate = || {
        let denied = STATE.get().denied;
        let copy = context.duplicate();
        assert!(copy.is_err() || STATE.get().denied == denied, "{mode}: the copy lacks a part");
        copy
    };
    let mut copy = step(provider, remedy, duplicate)?;
    let common = output.len();
    for context in [&mut context, &mut copy] {
        output.truncate(common);
        for number in before..before + after {
            let input = plain(number);
            let written = update(context, &mut place, &input[..piece])?;
            output.extend(&place[..written]);
        }
        let written = step(provider, remedy, || context.finish(&mut place))?;
        output.extend(&place[..written]);
        assert!(output == *secret, "{mode}: wrong bytes");
        let mut found = [0; 16];
        let found = &mut found[..tag.len()];
        if !tag.is_empty() {
            step(provider, remedy, || context.get_octets(c"tag", found))?;
        }
        assert!(found == &tag[..], "{mode}: wrong tag");
    }
    drop(copy);

    // The same context decrypts.
    step(provider, remedy, || context.init(false, Some(key), Some(iv)))?;
    if !tag.is_empty() {
        let mut tag = tag.clone();
        step(provider, remedy, || context.set_octets(c"tag", &mut tag))?;
    }
    if mode == "CCM" {
        // SAFETY: there is neither input nor output. Such a call sets the length of the message.
        step(provider, remedy, || unsafe { context.update_raw(null_mut(), 0, null(), secret.len()) })?;
    }
    output.clear();
    for input in secret.chunks(piece) {
        let written = update(&mut context, &mut place, input)?;
        output.extend(&place[..written]);
    }
    let written = step(provider, remedy, || context.finish(&mut place))?;
    output.extend(&place[..written]);
    let all = (0..before + after).flat_map(|number| plain(number).into_iter().take(piece));
    assert!(output.iter().copied().eq(all), "{mode}: decryption gives other bytes");
    Ok(())
}

/// Loads the provider, encrypts and decrypts, and unloads it. Returns true if an allocation has failed in this time; at most one fails.
fn life(
    core: &Core,
    scenario: &Scenario,
    index: usize,
    n: Option<usize>,
    remedy: Remedy,
    expected: &(Vec<u8>, Vec<u8>),
) -> bool {
    let provider = Provider::load(core).expect("good settings");
    let cipher = provider.cipher(index).expect("it is there");
    deny_allocation(n);
    let outcome = message(&provider, cipher, remedy, scenario, expected);
    let denied = n.is_some() && STATE.get().denied;
    deny_allocation(None);
    if outcome.is_err() {
        message(&provider, cipher, remedy, scenario, expected)
            .expect("a new context works when memory is available");
    }
    denied
}

/// Minimum bytes of the keystream that is computed ahead. All other allocations together are much smaller.
const SEGMENT: isize = 16 << 10;

/// Maximum bytes that a message allocates, with its contexts and keystream.
fn most_live(core: &Core, scenario: &Scenario, index: usize, expected: &(Vec<u8>, Vec<u8>)) -> isize {
    let provider = Provider::load(core).expect("good settings");
    let cipher = provider.cipher(index).expect("it is there");
    let before = LIVE.load(Relaxed);
    MAX_LIVE.store(before, Relaxed);
    message(&provider, cipher, Remedy::Again, scenario, expected).expect("there is memory");
    MAX_LIVE.load(Relaxed) - before
}

/// The environment variable with the task of a child process, `SETTINGS INDEX N`: the number of the scenario, and the algorithm and
/// the allocation from which the tests start.
const TASK: &str = "LOCKSTEP_TEST_MEMORY";

struct Scenario {
    settings: &'static [(&'static str, &'static str)],
    /// Bytes of an update.
    piece: usize,
    /// True if the test lets no allocation of an update fail.
    spares_updates: bool,
}

const SCENARIOS: [Scenario; 2] = [
    Scenario { settings: &[("ahead", "off")], piece: 100, spares_updates: false },
    // The updates consist of whole blocks, and the kernel is one for which keystream is computed ahead in GCM too.
    Scenario { settings: &[("ahead", "on"), ("kernel", "cpu/soft")], piece: 112, spares_updates: true },
];

const CIPHERS: usize = 29;

/// Tests all algorithms and allocations from the given ones on. Prints each one for the parent process.
fn child(task: &str) {
    let numbers: Vec<usize> = task.split(' ').map(|number| number.parse().expect("a number")).collect();
    let [settings, first_index, mut first] = numbers[..] else { panic!("a bad task: {task}") };
    let scenario = &SCENARIOS[settings];
    let core = Core::new(scenario.settings);
    for index in first_index..CIPHERS {
        let cipher = Provider::load(&core).expect("good settings").cipher(index).expect("it is there");
        let expected = expected(&cipher, scenario.piece);
        // This run creates the values that a process creates only once, such as the result of the self-test.
        life(&core, scenario, index, None, Remedy::Again, &expected);
        let most = most_live(&core, scenario, index, &expected);
        let makes_ahead = scenario.spares_updates && matches!(cipher.mode(), "CTR" | "GCM");
        assert_eq!(
            most > SEGMENT,
            makes_ahead,
            "{}: {most} bytes: is keystream computed ahead?",
            cipher.name()
        );
        println!("{}: begins", cipher.name());
        for n in first.. {
            println!("at {index} {n}");
            let mut denied = false;
            for remedy in [Remedy::Again, Remedy::Anew] {
                // Other threads of this process allocate as well, but a leak occurs each time.
                let leaked = (0..3).map(|_| {
                    let before = LIVE.load(Relaxed);
                    denied = life(&core, scenario, index, Some(n), remedy, &expected);
                    LIVE.load(Relaxed) - before
                });
                let leaked = leaked.min();
                assert_eq!(
                    leaked,
                    Some(0),
                    "{}: bytes leaked, allocation {n} denied, {remedy:?}",
                    cipher.name()
                );
            }
            if !denied {
                assert!(n > 1, "{}: a context and its copy need memory", cipher.name());
                break;
            }
        }
        first = 0;
    }
}

/// Runs this test in a child process; returns its output, its standard error, and whether it succeeded.
fn run_child(test: &str, task: &str) -> (String, String, bool) {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("LOCKSTEP_") {
            command.env_remove(name);
        }
    }
    let output = command
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(TASK, task)
        // If an infallible allocation fails, the child prints a backtrace.
        .env("RUST_BACKTRACE", "1")
        .stdin(Stdio::null())
        .output()
        .expect("the test itself can be run");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (text(output.stdout), text(output.stderr), output.status.success())
}

fn every_allocation_fails_once(test: &str, settings: usize) {
    if let Ok(task) = std::env::var(TASK) {
        return child(&task);
    }
    let (mut index, mut n) = (0, 0);
    let mut failures = Vec::new();
    loop {
        let (output, stderr, done) = run_child(test, &format!("{settings} {index} {n}"));
        if done {
            assert!(output.contains("AES-256-CCM: begins"), "the child has done nothing: {output}");
            break;
        }
        let at = output.lines().rev().find_map(|line| {
            let (index, n) = line.strip_prefix("at ")?.split_once(' ')?;
            Some((index.parse().ok()?, n.parse().ok()?))
        });
        (index, n) = at.unwrap_or_else(|| panic!("the child failed before it began: {output}{stderr}"));
        failures.push(format!("algorithm {index}, allocation {n}:\n{stderr}"));
        assert!(failures.len() < 40, "too many to go on:\n{}", failures.join("\n"));
        n += 1;
    }
    assert!(failures.is_empty(), "{} times:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn any_allocation_of_a_context_may_fail() {
    every_allocation_fails_once("any_allocation_of_a_context_may_fail", 0);
}

#[test]
fn any_allocation_for_keystream_ahead_may_fail() {
    every_allocation_fails_once("any_allocation_for_keystream_ahead_may_fail", 1);
}

/// The context shares its key with a copy, so that the expansion of the key for decryption needs memory.
#[test]
fn a_context_whose_key_cannot_be_expanded_for_decryption_has_no_key() {
    let core = Core::new(SCENARIOS[0].settings);
    let provider = Provider::load(&core).expect("good settings");
    let mut tested = 0;
    for cipher in (0..).map_while(|index| provider.cipher(index)) {
        if !matches!(cipher.mode(), "ECB" | "CBC" | "CTS" | "XTS") {
            continue;
        }
        let (key, iv) = (&KEY[..cipher.key_len()], &IV[..cipher.iv_len()]);
        let mut context = provider.context(cipher).expect("a context");
        context.init(true, Some(key), Some(iv)).expect("a key");
        let mut copy = context.duplicate().expect("a copy");
        deny_allocation(Some(0));
        let outcome = step(&provider, Remedy::Anew, || context.init(false, None, Some(iv)));
        deny_allocation(None);
        outcome.expect_err("it fails without memory");
        let (mut secret, mut text) = ([0; 48], [0; 48]);
        let refused = context.update(&mut text, &plain(1)[..32]).expect_err("it fails without a key");
        // As in the default provider: PROV_R_CIPHER_OPERATION_FAILED, no reason, or PROV_R_NO_KEY_SET.
        let expected = match cipher.mode() {
            "XTS" => 102,
            "CTS" => 0,
            _ => 114,
        };
        assert_eq!(refused.0 & 0x7F_FFFF, expected, "{}", cipher.name());
        // The copy keeps its key, and a new key makes the context usable.
        let written = copy.update(&mut secret, &plain(1)[..32]).expect("encrypts");
        context.init(false, Some(key), Some(iv)).expect("a key");
        let decrypted = context.update(&mut text, &secret[..written]).expect("decrypts");
        assert!(decrypted >= 16 && text[..decrypted] == plain(1)[..decrypted], "{}", cipher.name());
        tested += 1;
        // 3 ciphers of each of ECB, CBC and CTS, and 2 of XTS. Key wrap, which follows, lacks functions that `Provider::cipher` needs.
        if tested == 11 {
            return;
        }
    }
    panic!("only {tested} ciphers");
}
