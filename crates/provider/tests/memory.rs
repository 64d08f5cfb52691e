//! Memory that runs out: any one allocation of the provider fails, in any call on a context, and the call answers that
//! memory is short; nothing is lost, and the same call works when there is memory again.
//!
//! An allocation that Rust takes for infallible ends the process, the program's that has loaded us. So the calls are made
//! in a child process, and where one ends, the test says where it was. What is left out: loading the provider, which is
//! before any data; the self-test at a kernel's first use; work above the threshold, which opens devices; and updates with
//! keystream made ahead, whose thread and queues allocate as Rust does.

mod fake_core;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::process::{Command, Stdio};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

use fake_core::{Cipher, Context, Core, Param, Provider, Refused};
use openssl::cipher_ctx::CipherCtx;

/// The system's allocator, with the fault that the test asks for.
struct Scarce;

/// What becomes of the allocations of a thread.
#[derive(Clone, Copy)]
struct Scarcity {
    /// Allocations are counted now.
    counts: bool,
    /// So many succeed before one fails; then all succeed.
    left: usize,
    denied: bool,
}

thread_local! {
    static SCARCITY: Cell<Scarcity> = const { Cell::new(Scarcity { counts: false, left: 0, denied: false }) };
}

/// Bytes that are allocated.
static LIVE: AtomicIsize = AtomicIsize::new(0);
/// The most there were.
static MOST_LIVE: AtomicIsize = AtomicIsize::new(0);

/// True if this allocation is the one to fail.
fn denies() -> bool {
    let mut scarcity = SCARCITY.get();
    if !scarcity.counts || scarcity.denied {
        return false;
    }
    scarcity.denied = scarcity.left == 0;
    scarcity.left = scarcity.left.saturating_sub(1);
    SCARCITY.set(scarcity);
    scarcity.denied
}

// SAFETY: the system's allocator, or null, which is a lawful answer.
unsafe impl GlobalAlloc for Scarce {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if denies() {
            return null_mut();
        }
        let size = layout.size() as isize;
        MOST_LIVE.fetch_max(LIVE.fetch_add(size, Relaxed) + size, Relaxed);
        // SAFETY: as the caller vouches.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Relaxed);
        // SAFETY: it came from `System.alloc`, with this layout.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Scarce = Scarce;

/// Lets the n-th allocation of calls by [`step`] fail from now on; none if n is not given.
fn make_scarce(n: Option<usize>) {
    SCARCITY.set(Scarcity { counts: false, left: n.unwrap_or(0), denied: n.is_none() });
}

/// What is done about a call that was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Remedy {
    /// The same call once more.
    Again,
    /// Another context, and all of the message from its start.
    Anew,
}

/// A call in which an allocation may fail.
fn step<T>(
    provider: &Provider<'_>,
    remedy: Remedy,
    mut call: impl FnMut() -> Result<T, Refused>,
) -> Result<T, Refused> {
    let denied_before = SCARCITY.get().denied;
    SCARCITY.set(Scarcity { counts: true, ..SCARCITY.get() });
    let outcome = call();
    let Scarcity { denied, .. } = SCARCITY.get();
    SCARCITY.set(Scarcity { counts: false, ..SCARCITY.get() });
    let reason = match outcome {
        Ok(done) => return Ok(done),
        Err(reason) => reason,
    };
    let text = provider.reason(reason).expect("a reason of the list").to_string_lossy();
    assert!(denied && !denied_before, "refused, though there was memory: {text}");
    assert_eq!(text, "out of memory");
    match remedy {
        Remedy::Again => Ok(call().expect("what was refused for want of memory works when there is some")),
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

/// Bytes of an update at most.
const MOST: usize = 112;
/// Updates before the copy is made: enough that keystream is made ahead.
const BEFORE: usize = 7;
/// Updates of the original and of the copy.
const AFTER: usize = 3;

/// Bytes of the tag.
fn tag_len(mode: &str) -> usize {
    match mode {
        "GCM" => 16,
        "CCM" => 12,
        _ => 0,
    }
}

/// The pieces of the message: all of it is one for CCM.
fn pieces(mode: &str) -> (usize, usize) {
    if mode == "CCM" { (0, 1) } else { (BEFORE, AFTER) }
}

fn plain(number: usize) -> [u8; MOST] {
    std::array::from_fn(|i| (i * 7 + number * 131) as u8)
}

/// The message by OpenSSL's default provider, with its tag.
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

/// The sequence of calls; refused if one was, and the remedy is not for this function.
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
    let mut copy = step(provider, remedy, || context.duplicate())?;
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

    // And back, by the same context.
    step(provider, remedy, || context.init(false, Some(key), Some(iv)))?;
    if !tag.is_empty() {
        let mut tag = tag.clone();
        step(provider, remedy, || context.set_octets(c"tag", &mut tag))?;
    }
    if mode == "CCM" {
        // SAFETY: neither input nor output: the length of the message.
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

/// Loads the provider, encrypts and decrypts while one allocation fails, and unloads it. True if one has failed.
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
    make_scarce(n);
    let outcome = message(&provider, cipher, remedy, scenario, expected);
    let denied = n.is_some() && SCARCITY.get().denied;
    make_scarce(None);
    if outcome.is_err() {
        message(&provider, cipher, remedy, scenario, expected)
            .expect("a new context works when there is memory again");
    }
    denied
}

/// The least that keystream made ahead takes, and much more than anything else.
const SEGMENT: isize = 16 << 10;

/// Bytes that a message takes at most, with its contexts and keystream.
fn most_live(core: &Core, scenario: &Scenario, index: usize, expected: &(Vec<u8>, Vec<u8>)) -> isize {
    let provider = Provider::load(core).expect("good settings");
    let cipher = provider.cipher(index).expect("it is there");
    let before = LIVE.load(Relaxed);
    MOST_LIVE.store(before, Relaxed);
    message(&provider, cipher, Remedy::Again, scenario, expected).expect("there is memory");
    MOST_LIVE.load(Relaxed) - before
}

/// What a child process is to do: `SETTINGS INDEX N`, from that algorithm and allocation on.
const TASK: &str = "LOCKSTEP_TEST_MEMORY";

struct Scenario {
    settings: &'static [(&'static str, &'static str)],
    /// Bytes of an update.
    piece: usize,
    /// In updates no allocation fails.
    spares_updates: bool,
}

const SCENARIOS: [Scenario; 2] = [
    Scenario { settings: &[("ahead", "off")], piece: 100, spares_updates: false },
    // Whole blocks and a kernel that has it for GCM, so that keystream is made ahead.
    Scenario { settings: &[("ahead", "on"), ("kernel", "cpu/soft")], piece: 112, spares_updates: true },
];

const CIPHERS: usize = 29;

/// All algorithms and allocations from those given on. What is under way is told to the parent.
fn child(task: &str) {
    let numbers: Vec<usize> = task.split(' ').map(|number| number.parse().expect("a number")).collect();
    let [settings, first_index, mut first] = numbers[..] else { panic!("a bad task: {task}") };
    let scenario = &SCENARIOS[settings];
    let core = Core::new(scenario.settings);
    for index in first_index..CIPHERS {
        let cipher = Provider::load(&core).expect("good settings").cipher(index).expect("it is there");
        let expected = expected(&cipher, scenario.piece);
        // What is made once a process, as the self-test, is there from now on.
        life(&core, scenario, index, None, Remedy::Again, &expected);
        let most = most_live(&core, scenario, index, &expected);
        let makes_ahead = scenario.spares_updates && matches!(cipher.mode(), "CTR" | "GCM");
        assert_eq!(most > SEGMENT, makes_ahead, "{}: {most} bytes: is keystream made ahead?", cipher.name());
        println!("{}: begins", cipher.name());
        for n in first.. {
            println!("at {index} {n}");
            let mut denied = false;
            for remedy in [Remedy::Again, Remedy::Anew] {
                // Others in this process allocate as well, but what is lost is lost each time.
                let lost = (0..3).map(|_| {
                    let before = LIVE.load(Relaxed);
                    denied = life(&core, scenario, index, Some(n), remedy, &expected);
                    LIVE.load(Relaxed) - before
                });
                let lost = lost.min();
                assert_eq!(lost, Some(0), "{}: bytes lost, allocation {n} denied, {remedy:?}", cipher.name());
            }
            if !denied {
                assert!(n > 1, "{}: a context and its copy must be somewhere", cipher.name());
                break;
            }
        }
        first = 0;
    }
}

/// Runs this test in a child; what it wrote, and if it came through.
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
        // Rust tells where an allocation failed that must not.
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
        let (told, complaint, done) = run_child(test, &format!("{settings} {index} {n}"));
        if done {
            assert!(told.contains("AES-256-CCM: begins"), "the child has done nothing: {told}");
            break;
        }
        let at = told.lines().rev().find_map(|line| {
            let (index, n) = line.strip_prefix("at ")?.split_once(' ')?;
            Some((index.parse().ok()?, n.parse().ok()?))
        });
        (index, n) = at.unwrap_or_else(|| panic!("the child failed before it began: {told}{complaint}"));
        failures.push(format!("algorithm {index}, allocation {n}:\n{complaint}"));
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
