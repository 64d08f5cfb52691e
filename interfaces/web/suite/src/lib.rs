//! The shared suite of backends on the portable kernel, as a module of WebAssembly: `test/suite.test.js` runs it in Node. A check that
//! fails traps, so each check needs an instance of its own.
//!
//! The module also has CTR on memory of the caller, for `bench/speed.js`.

use std::panic;
use std::sync::Arc;

use lockstep_core::Key;
use lockstep_core::data::Data;
use lockstep_core::work::{Pass, Segment, Task};
use lockstep_cpu::inline::InlineKernel;
use lockstep_cpu::soft::{Soft, Width};
use lockstep_cpu::{Cpu, CpuOptions};
use lockstep_testkit::suite::Subject;

/// The name of a check, and the check.
type Check = (&'static str, fn(&Subject));

macro_rules! list {
    ($($module:ident: $($check:ident)*;)*) => {
        const CHECKS: &[Check] = &[$($(
            (concat!(stringify!($module), "::", stringify!($check)), lockstep_testkit::suite::$module::$check),
        )*)*];
    };
}
lockstep_testkit::suite_checks!([list]);

#[link(wasm_import_module = "env")]
unsafe extern "C" {
    /// Prints a text.
    fn print_text(text: *const u8, len: usize);
}

/// The number of checks.
#[unsafe(no_mangle)]
pub extern "C" fn count() -> usize {
    CHECKS.len()
}

/// The name of a check; `name_length` is its length in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn name(check: usize) -> *const u8 {
    CHECKS[check].0.as_ptr()
}

/// The length of the name of a check in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn name_length(check: usize) -> usize {
    CHECKS[check].0.len()
}

/// Runs a check. A failure is printed, and traps.
#[unsafe(no_mangle)]
pub extern "C" fn run(check: usize) {
    panic::set_hook(Box::new(|panic| {
        let text = panic.to_string();
        // SAFETY: the text is valid for reads of its length, and the caller copies it.
        unsafe { print_text(text.as_ptr(), text.len()) };
    }));
    // Without SIMD128, the suite would test another width.
    assert!(Soft::of_width(Width::Simd128).is_some(), "the module has no SIMD128");
    let device = Arc::new(Cpu::new(&CpuOptions { threads: Some(1) }));
    let subject = Subject::new(device, "cpu/soft").expect("the kernel runs everywhere");
    CHECKS[check].1(&subject);
}

/// Allocates memory that is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn allocate(len: usize) -> *mut u8 {
    vec![0; len].leak().as_mut_ptr()
}

/// Encrypts data in place by CTR.
///
/// # Safety
///
/// The key, the counter of 16 bytes and the data are memory of `allocate`, and do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ctr(
    key: *const u8,
    key_len: usize,
    counter: *mut [u8; 16],
    data: *mut u8,
    len: usize,
) {
    // SAFETY: the caller guarantees that the memory is valid and does not overlap.
    let (key, state, data) = unsafe {
        (std::slice::from_raw_parts(key, key_len), &mut *counter, std::slice::from_raw_parts_mut(data, len))
    };
    let key = Key::new(key).expect("the length of a key");
    let segment = Segment { key: &key, tweak: None, state, data: Data::in_place(data) };
    InlineKernel::best().run(Task::Pass(Pass::Ctr, &mut [segment])).expect("CTR takes any length");
}
