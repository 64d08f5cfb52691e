//! Calls kernels on the emulator directly, by the ABI of kernels/common/work.cuh, without the backend.

pub(crate) mod passes;

use std::ffi::{CStr, CString, c_char, c_void};

use lockstep_cuda as _;

unsafe extern "C" {
    fn lockstep_emu_kernel(index: u32) -> *const c_char;
    fn lockstep_emu_constant(name: *const c_char, value: *mut u64) -> i32;
    fn lockstep_emu_launches(name: *const c_char) -> u64;
    fn lockstep_emu_launch_from(
        name: *const c_char,
        first: u32,
        grid_x: u32,
        block_x: u32,
        dynamic_shared: u32,
        params: *const c_void,
        params_len: usize,
    ) -> i32;
    fn lockstep_emu_error(error: i32) -> *const c_char;
}

/// Names of all kernels.
pub(crate) fn kernels() -> Vec<String> {
    (0..)
        // SAFETY: any index is allowed.
        .map(|index| unsafe { lockstep_emu_kernel(index) })
        .take_while(|name| !name.is_null())
        // SAFETY: names are constants of the program.
        .map(|name| unsafe { CStr::from_ptr(name) }.to_str().unwrap().to_owned())
        .collect()
}

/// The number of launches of a kernel in this process.
pub(crate) fn launches(name: &str) -> u64 {
    let name = CString::new(name).unwrap();
    // SAFETY: the name is a terminated string.
    unsafe { lockstep_emu_launches(name.as_ptr()) }
}

/// A constant that a kernel's header exports.
pub(crate) fn constant(name: &str) -> usize {
    let c_name = CString::new(name).unwrap();
    let mut value = 0;
    // SAFETY: the name is a terminated string, and `value` is valid for a write.
    let found = unsafe { lockstep_emu_constant(c_name.as_ptr(), &mut value) };
    assert_eq!(found, 1, "no constant {name}");
    value as usize
}

/// Launches a kernel. `P` is the type of its parameters, in the layout of CUDA. All memory to which they point belongs to the test.
pub(crate) fn launch<P>(
    name: &str,
    grid: usize,
    block: usize,
    shared: usize,
    params: &P,
) -> Result<(), (i32, String)> {
    launch_from(name, 0, grid, block, shared, params)
}

/// Like [`launch`], but runs only the thread blocks from `first` on.
pub(crate) fn launch_from<P>(
    name: &str,
    first: usize,
    grid: usize,
    block: usize,
    shared: usize,
    params: &P,
) -> Result<(), (i32, String)> {
    let c_name = CString::new(name).unwrap();
    let params: *const P = params;
    // SAFETY: the kernel reads and writes the memory of the test. The tests check that the kernel accesses no other
    // memory.
    let rc = unsafe {
        let (first, grid, block, shared) = (first as u32, grid as u32, block as u32, shared as u32);
        lockstep_emu_launch_from(c_name.as_ptr(), first, grid, block, shared, params.cast(), size_of::<P>())
    };
    match rc {
        0 => Ok(()),
        // SAFETY: the text is valid until the next launch from this thread.
        rc => Err((rc, unsafe { CStr::from_ptr(lockstep_emu_error(rc)) }.to_str().unwrap().to_owned())),
    }
}
