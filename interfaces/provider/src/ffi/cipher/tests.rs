//! Tests of panics inside of each entry point.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::ptr::null;
use std::sync::Arc;

use lockstep::hazmat::inline::InlineKernel;
use lockstep::hazmat::mode::incremental::BlockIo;

use super::*;
use crate::instance::Instance;
use crate::libcrypto::core::Core;
use crate::libcrypto::param::END;
use crate::libcrypto::{Buffers, GetParam, Parameters, SetParam, list};
use crate::system::standard;

/// The methods in which a context can panic.
const METHODS: [&str; 8] = ["init", "update", "aad", "set_message_len", "finish", "one_shot", "get", "set"];

/// Names of settings, and their values.
type Values<'s> = &'s [(&'s str, &'s str)];

/// A cipher with values that own memory. It panics in one method, after the method has moved the values out of it.
struct Faulty {
    common: Common,
    panics_in: &'static str,
    values: Option<Arc<()>>,
    counts_bits: bool,
    /// The number of bytes of the last additional data.
    aad_len: usize,
}

impl Faulty {
    fn step<T>(&mut self, method: &str, result: T) -> Outcome<T> {
        let values = self.values.take().expect("no method runs after a panic");
        assert!(method != self.panics_in, "a panic of the test");
        self.values = Some(values);
        Ok(result)
    }
}

impl Cipher for Faulty {
    const GETTABLE: Parameters = list!(Num);
    const SETTABLE: Parameters = list!(Num);

    fn new(common: Common) -> Self {
        Faulty { common, panics_in: "", values: None, counts_bits: false, aad_len: 0 }
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn duplicate(&self) -> Outcome<impl FnOnce() -> Self> {
        Ok(|| Faulty { common: self.common.clone(), values: self.values.clone(), ..*self })
    }

    /// Sets new values, as a new key would.
    fn init(&mut self, _: bool, _: Option<&[u8]>, _: Option<&[u8]>) -> Outcome<()> {
        self.values.get_or_insert_default();
        self.step("init", ())
    }

    fn update(&mut self, data: Buffers<'_>) -> Outcome<usize> {
        self.step("update", data.len())
    }

    fn aad(&mut self, aad: &[u8]) -> Outcome<()> {
        self.aad_len = aad.len();
        self.step("aad", ())
    }

    fn set_message_len(&mut self, _: usize) -> Outcome<()> {
        self.step("set_message_len", ())
    }

    fn finish(&mut self, _: Buffers<'_>) -> Outcome<usize> {
        self.step("finish", 0)
    }

    fn one_shot(&mut self, data: Buffers<'_>) -> Outcome<usize> {
        self.step("one_shot", data.len())
    }

    fn begin_update(&mut self, len: usize) -> usize {
        if self.counts_bits { len.div_ceil(8) } else { len }
    }

    fn get(&mut self, _: &mut GetParam<'_>) -> Outcome<()> {
        self.step("get", ())
    }

    fn set(&mut self, _: &SetParam<'_>) -> Outcome<()> {
        self.step("set", ())
    }
}

fn instance_with(settings: Values<'_>) -> &'static Instance {
    let value = |name: &str| settings.iter().find(|(other, _)| *other == name).map(|(_, value)| value.into());
    Box::leak(Instance::new(Core::none(), value).unwrap())
}

/// A context of [`Faulty`], and a value that counts its copies.
fn faulty(panics_in: &'static str, settings: Values<'_>) -> (*mut c_void, Arc<()>) {
    let instance = instance_with(settings);
    let value = Arc::new(());
    let common = Common::new(instance, &ALGORITHMS[0]);
    let cipher = Faulty { panics_in, values: Some(Arc::clone(&value)), ..Faulty::new(common) };
    let context = Context { cipher, guard: initial_guard::<Faulty>(&instance.resources) };
    (Box::into_raw(object::allocate(|| context).unwrap()).cast(), value)
}

/// The method that a call of [`call_method`] calls.
fn method_of(call: &'static str) -> &'static str {
    call.split(' ').next().unwrap()
}

/// Calls a method through its entry point. `len` is the number of bytes of an update.
fn call_method(context: *mut c_void, method: &str, len: usize) -> c_int {
    let (key, input, mut output, mut written) = ([7; 32], [1; 300], [0; 300], 0);
    let (input, output, written) = (input.as_ptr(), output.as_mut_ptr(), &raw mut written);
    let mut params = [Param::Num.entry(), END];
    let key_len = ALGORITHMS[0].key_len;
    // SAFETY: the context is one of `Faulty`; the buffers have 300 bytes, and the array of parameters has an end.
    unsafe {
        match method {
            "init" => init::<Faulty, true>(context, key.as_ptr(), key_len, null(), 0, null()),
            "init with an IV" => init::<Faulty, true>(context, null(), 0, input, 16, null()),
            "init with parameters" => init::<Faulty, true>(context, null(), 0, input, 16, params.as_ptr()),
            "init for decryption" => init::<Faulty, false>(context, null(), 0, input, 16, null()),
            "update" => update::<Faulty>(context, output, written, 300, input, len),
            "aad" => update::<Faulty>(context, null_mut(), written, 0, input, len),
            "set_message_len" => update::<Faulty>(context, null_mut(), written, 0, null(), len),
            "finish" => finish::<Faulty>(context, output, written, 300),
            "one_shot" => one_shot::<Faulty>(context, output, written, 300, input, len),
            "get" => get_context_params::<Faulty>(context, params.as_mut_ptr()),
            "set" => set_context_params::<Faulty>(context, params.as_ptr()),
            _ => unreachable!("{method}"),
        }
    }
}

#[test]
fn after_a_panic_all_calls_fail_and_the_context_can_be_freed() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace").to_str().unwrap().to_owned();
    let mut cases: Vec<(&str, Values<'_>)> = Vec::new();
    cases.extend(METHODS.map(|method| (method, &[("LOCKSTEP_THRESHOLD", "1")][..])));
    let with_trace = [("LOCKSTEP_TRACE", &trace[..])];
    cases.extend(METHODS.map(|method| (method, &with_trace[..])));
    let guarded =
        ["update", "aad", "set_message_len", "one_shot", "init with parameters", "init for decryption"];
    cases.extend(guarded.map(|call| (call, &[][..])));
    // This kernel may leave parts of a key on the stack.
    cases.push(("init", &[("LOCKSTEP_KERNEL", "cpu/soft")]));
    for (call, settings) in cases {
        let panics_in = method_of(call);
        let (context, value) = faulty(panics_in, settings);
        // SAFETY: the context is one of `Faulty`, and it is freed once.
        unsafe {
            let copy = duplicate_context::<Faulty>(context);
            assert_eq!(call_method(context, call, MAX_UNGUARDED + 1), 0, "{call}, {settings:?}");
            // All methods fail: also `init`, which would set a new key, and calls on few bytes, which are not guarded against panics.
            for method in METHODS {
                assert_eq!(call_method(context, method, 16), 0, "{method} after a panic in {call}");
            }
            assert!(duplicate_context::<Faulty>(context).is_null(), "copied after a panic in {call}");
            free_context::<Faulty>(context);
            // A copy that was made before the panic is not affected.
            let other = if panics_in == "init" { "finish" } else { "init" };
            assert_eq!(call_method(copy, other, 300), 1);
            free_context::<Faulty>(copy);
        }
        assert_eq!(Arc::strong_count(&value), 1, "freed once after a panic in {call}");
    }
}

#[test]
fn a_panic_in_a_small_update_is_an_error_if_small_updates_go_through_the_planner() {
    for threshold in ["1", "16", "256", "272"] {
        for call in ["update", "aad", "set_message_len"] {
            let (context, _) = faulty(call, &[("LOCKSTEP_THRESHOLD", threshold)]);
            // SAFETY: the context is one of `Faulty`, and each is freed once.
            unsafe {
                let copy = duplicate_context::<Faulty>(context);
                for context in [copy, context] {
                    assert_eq!(call_method(context, call, 16), 0, "{call}, threshold {threshold}");
                    free_context::<Faulty>(context);
                }
            }
        }
    }
}

/// The provider writes the messages of these panics, and only if descriptor 2 is still the standard error of the program. Rust's own line
/// about the abort would be written in any case.
#[test]
fn a_panic_in_a_short_call_ends_the_process_without_a_line_of_rust() {
    const NAME: &str = "ffi::cipher::tests::a_panic_in_a_short_call_ends_the_process_without_a_line_of_rust";
    const CHILD: &str = "LOCKSTEP_TEST_CHILD";
    let kernel = InlineKernel::all().find(|kernel| kernel.expands_in_place()).map(InlineKernel::name);
    let mut calls = vec!["init with an IV", "update", "aad", "set_message_len", "finish", "get", "set"];
    // Without such a kernel, an init with a key is guarded.
    calls.extend(kernel.map(|_| "init"));
    if let Ok(call) = std::env::var(CHILD) {
        let call = calls.into_iter().find(|other| *other == call).unwrap();
        // The lowest threshold with which there are short calls.
        let mut settings = vec![("LOCKSTEP_THRESHOLD", "273")];
        settings.extend(kernel.map(|kernel| ("LOCKSTEP_KERNEL", kernel)));
        standard::record();
        standard::report_panics();
        call_method(faulty(method_of(call), &settings).0, call, MAX_UNGUARDED);
        return;
    }
    for call in calls {
        let program = std::env::current_exe().unwrap();
        let output = Command::new(program).args(["--exact", NAME]).env(CHILD, call).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{call}: {stderr}");
        let lines: Vec<_> = stderr.lines().collect();
        let [panic, abort] = lines[..] else { panic!("{call}: {stderr}") };
        assert!(panic.starts_with("lockstep: ") && panic.contains("a panic of the test"), "{call}: {stderr}");
        assert!(abort.starts_with("lockstep: ") && abort.contains("cannot unwind"), "{call}: {stderr}");
    }
}

#[test]
fn ciphers_that_process_stored_additional_data_have_no_short_calls() {
    let resources = &instance_with(&[]).resources;
    assert!(initial_guard::<Gcm>(resources) == Guard::ShortCallsUnguarded);
    assert!(initial_guard::<GcmSiv>(resources) == Guard::Always);
    assert!(initial_guard::<Siv>(resources) == Guard::Always);
}

/// Otherwise the slice of additional data would be longer than the memory of the caller.
#[test]
fn the_length_of_an_update_without_output_may_be_a_number_of_bits() {
    let (pointer, _) = faulty("", &[]);
    // SAFETY: the context is one of `Faulty`, and it is freed once.
    unsafe {
        context::<Faulty>(pointer).cipher.counts_bits = true;
        assert_eq!(call_method(pointer, "aad", 20), 1);
        assert_eq!(context::<Faulty>(pointer).cipher.aad_len, 3, "20 bits");
        free_context::<Faulty>(pointer);
    }
}

#[test]
fn the_trace_counts_bytes_of_updates_whose_length_is_a_number_of_bits() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let (pointer, _) = faulty("", &[("LOCKSTEP_TRACE", trace.to_str().unwrap())]);
    // SAFETY: the context is one of `Faulty`, and it is freed once.
    unsafe {
        context::<Faulty>(pointer).cipher.counts_bits = true;
        assert_eq!(call_method(pointer, "update", 20), 1);
        assert_eq!(call_method(pointer, "aad", 16), 1);
        context::<Faulty>(pointer).cipher.common.instance.resources.write_totals();
        free_context::<Faulty>(pointer);
    }
    let lines = std::fs::read_to_string(trace).unwrap();
    assert!(lines.contains("encrypt: 5 bytes in 2 calls"), "{lines}");
}
