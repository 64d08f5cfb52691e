//! Threads, forks, unloading, several library contexts, the end of the process, and OpenSSL's random generator on this
//! provider's ciphers.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use crate::evp::{Cipher, Context, DECRYPT, ENCRYPT, Library, Params};
use crate::harness::{
    ALGORITHMS, Algorithm, Mode, bytes, in_own_process, library, modules, new_library, query, subject, theirs,
};
use crate::script::key_and_iv;

/// A context that is ready to encrypt.
fn ready(cipher: &Cipher, name: &str) -> Context {
    let (key, iv) = key_and_iv(name);
    let mut context = cipher.context();
    let iv = Some(&*iv).filter(|iv| !iv.is_empty());
    assert_eq!(context.init(Some(cipher), ENCRYPT, Some(&key), iv, &Params::new()), 1);
    context
}

/// Encrypts `data` in one update.
fn encrypted(cipher: &Cipher, name: &str, data: &[u8]) -> Vec<u8> {
    let mut context = ready(cipher, name);
    let mut out = context.update(data).expect("an update");
    out.extend(context.finish().expect("a final"));
    out
}

fn subject_in(library: &Arc<Library>, name: &str) -> Cipher {
    let cipher = library.cipher(name, &query()).expect("in the subject");
    assert_eq!(cipher.provider(), subject());
    cipher
}

/// Runs `body` in a forked child process, which returns success by its exit code. A child that hangs is killed.
fn forked(body: impl FnOnce()) {
    // SAFETY: this process has no other thread that could hold a lock: see `in_own_process`. The child calls `_exit`.
    unsafe {
        let child = libc::fork();
        assert!(child >= 0);
        if child == 0 {
            libc::alarm(300);
            let held = catch_unwind(AssertUnwindSafe(body)).is_ok();
            libc::_exit(if held { 0 } else { 1 });
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert!(
            libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
            "the child ended with {status:#x}"
        );
    }
}

const NAMES: [&str; 6] =
    ["AES-128-CTR", "AES-256-GCM", "AES-256-CBC", "AES-128-ECB", "AES-256-XTS", "AES-128-CFB"];

#[test]
fn eight_threads_with_many_contexts_each() {
    let data = bytes(40_000, 1);
    let expected: Vec<Vec<u8>> = NAMES.iter().map(|name| encrypted(&theirs(name), name, &data)).collect();
    thread::scope(|scope| {
        for t in 0..8 {
            let (data, expected) = (&data, &expected);
            scope.spawn(move || {
                // All contexts exist at once and are used alternately.
                let mut running: Vec<(usize, Context, Vec<u8>)> = (0..60)
                    .map(|i| {
                        let which = (i + t) % NAMES.len();
                        (which, ready(&subject_in(library(), NAMES[which]), NAMES[which]), Vec::new())
                    })
                    .collect();
                let (a, b) = data.split_at(16_000);
                for piece in [a, b] {
                    for (which, context, out) in &mut running {
                        // An XTS data unit is one update.
                        let whole = NAMES[*which].ends_with("XTS");
                        let piece =
                            if whole { if piece.len() == a.len() { data } else { continue } } else { piece };
                        out.extend(context.update(piece).expect("an update"));
                    }
                }
                for (which, mut context, mut out) in running {
                    out.extend(context.finish().expect("a final"));
                    assert!(out == expected[which], "{}", NAMES[which]);
                }
            });
        }
    });
}

#[test]
fn large_messages_on_many_threads_at_once() {
    let data = bytes(3_000_000, 2);
    thread::scope(|scope| {
        for name in NAMES {
            let expected = Arc::new(encrypted(&theirs(name), name, &data));
            for _ in 0..2 {
                let (data, expected) = (&data, expected.clone());
                scope.spawn(move || {
                    assert!(encrypted(&subject_in(library(), name), name, data) == *expected, "{name}")
                });
            }
        }
    });
}

#[test]
fn contexts_move_between_threads() {
    let data = bytes(50_000, 3);
    let mut context = ready(&subject_in(library(), "AES-256-CTR"), "AES-256-CTR");
    let mut out = Vec::new();
    for piece in data.chunks(777) {
        (context, out) = thread::spawn({
            let piece = piece.to_vec();
            move || {
                let (mut context, mut out) = (context, out);
                out.extend(context.update(&piece).expect("an update"));
                (context, out)
            }
        })
        .join()
        .unwrap();
    }
    assert!(out == encrypted(&theirs("AES-256-CTR"), "AES-256-CTR", &data));
}

/// Python's cryptography uses contexts in this way: it copies one context for each message, in any thread.
#[test]
fn threads_copy_a_context_at_the_same_time() {
    /// A context that the threads copy, but do not otherwise use.
    struct Template(Context);
    // SAFETY: the methods that are called, `copy`, take `&self`; OpenSSL and providers do not change the source of a copy in a
    // way that is visible to other threads.
    unsafe impl Sync for Template {}

    let data = bytes(1024, 4);
    for name in ["AES-128-GCM", "AES-256-GCM"] {
        let expected = encrypted(&theirs(name), name, &data);
        for _ in 0..20 {
            let template = Template(ready(&subject_in(library(), name), name));
            let start = Barrier::new(4);
            thread::scope(|scope| {
                for _ in 0..4 {
                    let (template, data, expected, start) = (&template, &data, &expected, &start);
                    scope.spawn(move || {
                        start.wait();
                        for _ in 0..5 {
                            let mut copy = template.0.copy().expect("a copy");
                            let mut out = copy.update(data).expect("an update");
                            out.extend(copy.finish().expect("a final"));
                            assert!(out == *expected, "{name}");
                        }
                    });
                }
            });
        }
    }
}

/// nginx uses the provider in this way: the master loads the provider, and its workers use it.
#[test]
fn a_child_forked_after_loading_encrypts() {
    in_own_process("robust::a_child_forked_after_loading_encrypts", || {
        let library = library();
        let check = || {
            for name in NAMES {
                for n in [100, 4096, 2_000_000] {
                    let data = bytes(n, 4);
                    let out = encrypted(&subject_in(library, name), name, &data);
                    assert!(out == encrypted(&theirs(name), name, &data), "{name}: {n}");
                }
            }
        };
        forked(check);
        forked(check);
        // The provider has been used. Small and large calls run in a child of a child, and afterwards in the parent.
        check();
        forked(check);
        forked(|| {
            check();
            forked(check);
        });
        check();
    });
}

#[test]
fn a_child_continues_with_contexts_of_its_parent() {
    in_own_process("robust::a_child_continues_with_contexts_of_its_parent", || {
        let data = bytes(3_000_000, 5);
        for name in ["AES-256-CTR", "AES-128-GCM", "AES-128-CBC"] {
            // There are sequences of small updates, for which keystream is computed ahead, and large updates, which the planner
            // processes.
            for size in [4096, 1_000_000] {
                let expected = encrypted(&theirs(name), name, &data);
                let mut context = ready(&subject_in(library(), name), name);
                let mut out = Vec::new();
                let (before, after) = data.split_at(1_500_000);
                before.chunks(size).for_each(|piece| out.extend(context.update(piece).expect("an update")));
                let finish = |mut context: Context, mut out: Vec<u8>| {
                    after
                        .chunks(size)
                        .for_each(|piece| out.extend(context.update(piece).expect("an update")));
                    out.extend(context.finish().expect("a final"));
                    assert!(out == expected, "{name}: {size}");
                };
                let context = AssertUnwindSafe(context);
                forked(|| finish(context.copy().expect("a copy"), out.clone()));
                finish(context.0, out);
            }
        }
    });
}

#[test]
fn it_can_be_unloaded_and_loaded_again() {
    in_own_process("robust::it_can_be_unloaded_and_loaded_again", || {
        let data = bytes(100_000, 6);
        let mut expected = None;
        for _ in 0..20 {
            let library = Arc::new(new_library());
            let out = encrypted(&subject_in(&library, "AES-256-GCM"), "AES-256-GCM", &data);
            assert!(*expected.get_or_insert_with(|| out.clone()) == out);
            assert!(library.unload_last());
            // The provider is loaded again in the same library context.
            library.load(subject());
            assert_eq!(
                encrypted(&subject_in(&library, "AES-256-CTR"), "AES-256-CTR", &data).len(),
                data.len()
            );
        }
    });
}

#[test]
fn a_context_outlives_the_unloading_of_its_provider() {
    in_own_process("robust::a_context_outlives_the_unloading_of_its_provider", || {
        let library = Arc::new(new_library());
        let cipher = subject_in(&library, "AES-256-CTR");
        let mut context = ready(&cipher, "AES-256-CTR");
        let data = bytes(5000, 7);
        let mut out = context.update(&data[..100]).unwrap();
        // libcrypto keeps a provider loaded while one of its objects is in use.
        assert!(library.unload_last());
        drop(cipher);
        out.extend(context.update(&data[100..]).unwrap());
        assert!(out == encrypted(&theirs("AES-256-CTR"), "AES-256-CTR", &data));
    });
}

#[test]
fn many_library_contexts_exist_at_the_same_time() {
    let data = bytes(10_000, 8);
    let libraries: Vec<Arc<Library>> = (0..10).map(|_| Arc::new(new_library())).collect();
    thread::scope(|scope| {
        for library in libraries {
            let data = &data;
            scope.spawn(move || {
                for name in NAMES {
                    assert!(
                        encrypted(&subject_in(&library, name), name, data)
                            == encrypted(&theirs(name), name, data)
                    );
                }
            });
        }
    });
}

/// The default library context of the process: OPENSSL_cleanup frees the random generator, which uses this provider's
/// ciphers, and everything that a program has not freed.
#[test]
fn contexts_live_until_the_process_ends() {
    in_own_process("robust::contexts_live_until_the_process_ends", || {
        static LEFT: Mutex<Option<Context>> = Mutex::new(None);
        extern "C" fn free_it() {
            drop(LEFT.lock().unwrap().take());
        }
        let library = Library::of_the_process(&modules());
        library.load("default");
        library.load(subject());
        library.prefer(&format!("?{}", query()));
        let library = Arc::new(library);
        assert_ne!(library.random(32), library.private_random(32));
        let cipher = subject_in(&library, "AES-256-CTR");
        let mut contexts: Vec<Context> = (0..10).map(|_| ready(&cipher, "AES-256-CTR")).collect();
        contexts.iter_mut().for_each(|context| assert!(context.update(&bytes(2_000_000, 9)).is_some()));
        *LEFT.lock().unwrap() = contexts.pop();
        // SAFETY: the function may run at the end of the process, before libcrypto's own functions.
        unsafe { libc::atexit(free_it) };
        std::mem::forget((library, cipher, contexts));
    });
}

/// A library context whose random generator uses the provider from the start.
fn preferring() -> Arc<Library> {
    let library = new_library();
    library.prefer(&format!("?{}", query()));
    let library = Arc::new(library);
    for name in ["AES-256-CTR", "AES-256-ECB"] {
        assert_eq!(library.cipher(name, "").expect("there").provider(), subject());
    }
    library
}

#[test]
fn the_random_generator_runs_on_it() {
    let library = preferring();
    let mut seen = HashSet::new();
    for n in [1, 16, 100, 65_536, 1_000_000] {
        for _ in 0..3 {
            let (public, private) = (library.random(n + 16), library.private_random(n + 16));
            assert!(seen.insert(public) && seen.insert(private), "random bytes came twice");
        }
    }
    let all = Mutex::new(seen);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..50 {
                        assert!(all.lock().unwrap().insert(library.random(32)), "random bytes came twice");
                    }
                })
            })
            .collect();
        // The threads are joined, since a thread frees its generator when it ends, and the library context must still exist
        // then.
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn the_random_generator_runs_on_it_in_a_forked_child() {
    in_own_process("robust::the_random_generator_runs_on_it_in_a_forked_child", || {
        let library = preferring();
        forked(|| assert_ne!(library.random(32), library.random(32)));
        let before = library.random(32);
        // After the fork, parent and child have the same state, but must not return the same random bytes.
        let mut pipe = [0; 2];
        // SAFETY: the array has space for two descriptors.
        assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
        forked(|| {
            let bytes = library.random(32);
            // SAFETY: 32 bytes are written to an open pipe.
            assert_eq!(unsafe { libc::write(pipe[1], bytes.as_ptr().cast(), 32) }, 32);
        });
        let mut childs = vec![0; 32];
        // SAFETY: the buffer has space for the 32 bytes that the child has written.
        assert_eq!(unsafe { libc::read(pipe[0], childs.as_mut_ptr().cast(), 32) }, 32);
        let parents = library.random(32);
        assert!(before != childs && childs != parents && parents != before);
    });
}

/// Frees contexts before a message, during a message and after a message. A leak checker finds memory that is not freed.
#[test]
fn contexts_are_freed_in_any_state() {
    for algorithm in ALGORITHMS {
        let name = Algorithm::name(algorithm);
        let cipher = subject_in(library(), name);
        let (key, iv) = key_and_iv(name);
        let iv = Some(&*iv).filter(|iv| !iv.is_empty());
        for way in [ENCRYPT, DECRYPT] {
            for (key, iv) in [(None, None), (Some(&*key), None), (None, iv), (Some(&*key), iv)] {
                let mut context = cipher.context();
                assert_eq!(context.init(Some(&cipher), way, key, iv, &Params::new()), 1);
                let copy = context.copy();
                // The context is used with another cipher.
                let other = subject_in(library(), "AES-128-CTR");
                assert_eq!(
                    context.init(Some(&other), ENCRYPT, Some(&[1; 16]), Some(&[2; 16]), &Params::new()),
                    1
                );
                assert_eq!(context.update(&[0; 20]).map(|out| out.len()), Some(20));
                drop(context);
                if let (Some(mut copy), Some(_), Some(_)) = (copy, key, iv) {
                    let fine = copy.update(&[0; 32]).is_some();
                    // CCM needs the tag before decryption, and zeros are not a wrapped key, so these updates fail.
                    let refuses = matches!(algorithm.mode, Mode::Ccm | Mode::Wrap) && way == DECRYPT;
                    assert!(fine != refuses, "{name}");
                }
            }
        }
    }
}
