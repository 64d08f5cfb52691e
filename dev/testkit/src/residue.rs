//! Searches the memory of a process, on Linux, for keys that the process has used and dropped.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

use lockstep_reference::Aes;

/// A byte of the key of a step, computed from its index, so that the program does not contain the whole key.
fn byte(step: usize, index: usize) -> u8 {
    let mut value = ((step as u64 + 1) << 32) | (index as u64 + 1);
    for _ in 0..3 {
        value = (value ^ value >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    (value >> 56) as u8
}

/// Waits until the process that searches the memory has written a byte.
fn wait() {
    std::io::stdin().read_exact(&mut [0]).unwrap();
}

/// In the process whose memory is searched: runs each step with a key of 32 bytes, and prints a line after it. Each step drops every value
/// that it derives from its key. `control` returns a value that contains a key, which the search must find.
pub fn use_keys<T>(steps: &[(&str, impl Fn(&[u8]))], control: impl FnOnce(&[u8]) -> T) {
    let mut key = vec![0; 32];
    for (number, (name, step)) in steps.iter().enumerate() {
        wait();
        (0..32).for_each(|index| key[index] = byte(number, index));
        step(&key);
        key.fill(0);
        println!("step {name}");
    }
    wait();
    (0..32).for_each(|index| key[index] = byte(steps.len(), index));
    let alive = control(&key);
    key.fill(0);
    println!("step control");
    wait();
    drop(alive);
}

/// The halves of the key of a step, round keys, and H of GCM.
fn secrets(step: usize) -> BTreeMap<&'static str, [u8; 16]> {
    let key: Vec<u8> = (0..32).map(|index| byte(step, index)).collect();
    let aes = Aes::new(&key);
    BTreeMap::from([
        ("the first half of the key", *key.first_chunk().unwrap()),
        ("the second half of the key", *key.last_chunk().unwrap()),
        ("a round key", aes.round_keys()[2]),
        ("the last round key", aes.round_keys()[14]),
        ("H of GCM", aes.encrypt([0; 16])),
    ])
}

/// True if the memory contains the secret. The standard library searches for the first byte, because its code is optimised in every build
/// profile.
fn contains(memory: &[u8], secret: &[u8; 16]) -> bool {
    let mut rest = memory;
    while rest.skip_until(secret[0]).unwrap() > 0 {
        if rest.starts_with(&secret[1..]) {
            return true;
        }
    }
    false
}

/// Finds the secrets of a step that are in the writable memory of a process. Returns their names and places.
fn search(process: u32, secrets: &BTreeMap<&'static str, [u8; 16]>) -> Vec<String> {
    let memory = File::open(format!("/proc/{process}/mem")).unwrap();
    let mut found = Vec::new();
    for line in fs::read_to_string(format!("/proc/{process}/maps")).unwrap().lines() {
        let mut words = line.split_whitespace();
        let (Some(range), Some(rights)) = (words.next(), words.next()) else { continue };
        let name = words.nth(3).unwrap_or("memory");
        if !rights.starts_with("rw") || name.starts_with("[vv") {
            continue;
        }
        let (start, end) = range.split_once('-').unwrap();
        let [start, end] = [start, end].map(|address| u64::from_str_radix(address, 16).unwrap());
        let mut content = vec![0; (end - start) as usize];
        if memory.read_exact_at(&mut content, start).is_err() {
            continue;
        }
        let here = secrets.iter().filter(|(_, secret)| contains(&content, secret));
        found.extend(here.map(|(what, _)| format!("{what} in {name}")));
    }
    found
}

/// Starts a program that calls [`use_keys`], and searches its memory after each step.
///
/// # Panics
/// If a key remains, or if the search does not find the key of the control.
pub fn assert_no_residue(mut program: Command, steps: usize) {
    // With lazy binding, the first call of a function saves all registers, which may hold keys, on the stack. This variable disables lazy
    // binding.
    program.env("LD_BIND_NOW", "1").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = program.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut input = child.stdin.take().unwrap();
    let (mut found, mut is_control_found) = (Vec::new(), false);
    for step in 0..=steps {
        input.write_all(b"x").unwrap();
        let line = lines.find(|line| line.contains("step ")).expect("a line after each step");
        let here = search(child.id(), &secrets(step));
        if step == steps {
            is_control_found = !here.is_empty();
        } else {
            found.extend(here.iter().map(|what| format!("{line}: {what}")));
        }
    }
    input.write_all(b"x").unwrap();
    drop(input);
    lines.for_each(drop);
    assert!(child.wait().unwrap().success());
    assert!(is_control_found, "the search did not find the key that is alive");
    assert!(found.is_empty(), "{}", found.join("\n"));
}
