//! Tests of panics inside of each entry point.

use std::process::Command;
use std::ptr::null;
use std::sync::Arc;

use lockstep::hazmat::mode::incremental::BlockIo;

use super::*;
use crate::instance::Instance;
use crate::libcrypto::core::Core;
use crate::libcrypto::param::END;
use crate::libcrypto::{Buffers, GetParam, Parameters, SetParam, list};

/// The methods in which a context can panic.
const METHODS: [&str; 8] = ["init", "update", "aad", "set_message_len", "finish", "one_shot", "get", "set"];

/// Those of them that are not guarded, unless the planner may process few bytes. `init` with a key is not in this list, because it depends
/// on the kernel.
const UNGUARDED: [&str; 3] = ["finish", "get", "set"];

/// A cipher with values that own memory. It panics in one method, after the method has moved the values out of it.
struct Faulty {
    common: Common,
    panics_in: &'static str,
    values: Option<Arc<()>>,
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
        Faulty { common, panics_in: "", values: None }
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn duplicate(&self) -> Outcome<impl FnOnce() -> Self> {
        Ok(|| Faulty { common: self.common.clone(), panics_in: self.panics_in, values: self.values.clone() })
    }

    /// Sets new values, as a new key would.
    fn init(&mut self, _: bool, _: Option<&[u8]>, _: Option<&[u8]>) -> Outcome<()> {
        self.values.get_or_insert_default();
        self.step("init", ())
    }

    fn update(&mut self, data: Buffers<'_>) -> Outcome<usize> {
        self.step("update", data.len())
    }

    fn aad(&mut self, _: &[u8]) -> Outcome<()> {
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

    fn get(&mut self, _: &mut GetParam<'_>) -> Outcome<()> {
        self.step("get", ())
    }

    fn set(&mut self, _: &SetParam<'_>) -> Outcome<()> {
        self.step("set", ())
    }
}

/// A context of [`Faulty`] with a setting `threshold`, and a value that counts its copies.
fn faulty(panics_in: &'static str, threshold: &str) -> (*mut c_void, Arc<()>) {
    let settings = |name: &str| (name == "LOCKSTEP_THRESHOLD").then(|| threshold.into());
    let instance = Box::leak(Instance::new(Core::none(), settings).unwrap());
    let calls = first_calls(&instance.resources);
    let value = Arc::new(());
    let common = Common::new(instance, &ALGORITHMS[0]);
    let cipher = Faulty { common, panics_in, values: Some(Arc::clone(&value)) };
    let context = Context { cipher, calls };
    (object::allocate(|| context).unwrap().cast(), value)
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
            "update" => update::<Faulty>(context, output, written, 300, input, len),
            "aad" => update::<Faulty>(context, null_mut(), written, 0, input, 20),
            "set_message_len" => update::<Faulty>(context, null_mut(), written, 0, null(), 20),
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
    let with_guards = METHODS.map(|method| (method, "1"));
    let mut cases = METHODS.map(|method| (method, "auto")).to_vec();
    cases.retain(|(method, _)| *method != "init" && !UNGUARDED.contains(method));
    for (panics_in, threshold) in cases.into_iter().chain(with_guards) {
        let (context, value) = faulty(panics_in, threshold);
        // SAFETY: the context is one of `Faulty`, and it is freed once.
        unsafe {
            let copy = duplicate_context::<Faulty>(context);
            assert_eq!(call_method(context, panics_in, 300), 0);
            // All methods fail: also `init`, which would set a new key, and calls on few bytes, which are not guarded against panics.
            for method in METHODS {
                assert_eq!(call_method(context, method, 16), 0, "{method} after a panic in {panics_in}");
            }
            assert!(duplicate_context::<Faulty>(context).is_null(), "copied after a panic in {panics_in}");
            free_context::<Faulty>(context);
            // A copy that was made before the panic is not affected.
            let other = if panics_in == "init" { "finish" } else { "init" };
            assert_eq!(call_method(copy, other, 300), 1);
            free_context::<Faulty>(copy);
        }
        assert_eq!(Arc::strong_count(&value), 1, "freed once after a panic in {panics_in}");
    }
}

#[test]
fn a_panic_in_a_small_update_is_an_error_if_small_updates_go_through_the_planner() {
    for threshold in ["1", "16", "256"] {
        let (context, _) = faulty("update", threshold);
        // SAFETY: the context is one of `Faulty`, and each is freed once.
        unsafe {
            let copy = duplicate_context::<Faulty>(context);
            for context in [copy, context] {
                assert_eq!(call_method(context, "update", 16), 0, "threshold {threshold}");
                free_context::<Faulty>(context);
            }
        }
    }
}

#[test]
fn a_panic_in_a_call_that_is_not_guarded_ends_the_process() {
    const NAME: &str = "ffi::cipher::tests::a_panic_in_a_call_that_is_not_guarded_ends_the_process";
    const CHILD: &str = "LOCKSTEP_TEST_CHILD";
    let calls = UNGUARDED.map(|method| (method, method)).into_iter();
    for (panics_in, method) in calls.chain([("update", "update"), ("init", "init with an IV")]) {
        match std::env::var(CHILD) {
            Ok(child) if child == method => {
                call_method(faulty(panics_in, "auto").0, method, 16);
            }
            Ok(_) => {}
            Err(_) => {
                let program = std::env::current_exe().unwrap();
                let output =
                    Command::new(program).args(["--exact", NAME]).env(CHILD, method).output().unwrap();
                assert_eq!(
                    output.status.code(),
                    None,
                    "a signal ends it after a panic in {method}: {output:?}"
                );
            }
        }
    }
}
