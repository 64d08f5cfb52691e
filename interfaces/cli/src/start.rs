//! Prepares the programs `lockstep` and `lockstep-lab` before they run a command. This code is not in the library `lockstep_cli`,
//! because that library has no unsafe code.

/// Makes the C library run `record_closed_streams` before the Rust runtime starts, which opens `/dev/null` in place of closed streams.
#[cfg(any(target_os = "linux", target_os = "macos"))]
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
#[allow(unsafe_code, reason = "the section of initialisers")]
static RECORD_CLOSED_STREAMS: extern "C" fn() = record_closed_streams;

/// Records which standard streams are closed.
#[cfg(any(target_os = "linux", target_os = "macos"))]
#[allow(unsafe_code, reason = "a function of the C library")]
extern "C" fn record_closed_streams() {
    use std::ffi::c_int;
    unsafe extern "C" {
        fn fcntl(descriptor: c_int, command: c_int, ...) -> c_int;
    }
    const F_GETFD: c_int = 1;
    for number in 0..3_u8 {
        // SAFETY: F_GETFD only reads the flags of a descriptor. The call fails if there is no such descriptor.
        if unsafe { fcntl(number.into(), F_GETFD) } < 0 {
            lockstep_cli::standard::set_closed(number);
        }
    }
}

/// Disables Mesa's device selection layer for Vulkan if there is no display server, unless the user has configured the
/// layer. The layer would query the display server and print an error.
#[allow(unsafe_code, reason = "one variable, before there are threads")]
pub(crate) fn disable_device_selection() {
    let is_set = |name| std::env::var_os(name).is_some();
    if !["XDG_RUNTIME_DIR", "MESA_VK_DEVICE_SELECT", "NODEVICE_SELECT"].into_iter().any(is_set) {
        // SAFETY: no other thread runs yet.
        unsafe { std::env::set_var("NODEVICE_SELECT", "1") };
    }
}
