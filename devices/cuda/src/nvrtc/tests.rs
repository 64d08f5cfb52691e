use super::*;

/// The code that compilers of tests make.
pub(crate) const CODE: &[u8] = &[0; 4];

/// Makes a compiler that supports these architectures and whose output is [`CODE`].
pub(crate) fn compiler(version: (i32, i32), supported: &[u32]) -> Nvrtc {
    extern "C" fn compile(_: Program, _: c_int, _: *const *const c_char) -> Code {
        0
    }
    of(version, supported, compile)
}

/// Makes a compiler whose compilations always fail.
pub(crate) fn failing_compiler(version: (i32, i32), supported: &[u32]) -> Nvrtc {
    extern "C" fn compile(_: Program, _: c_int, _: *const *const c_char) -> Code {
        6
    }
    of(version, supported, compile)
}

fn of(
    version: (i32, i32),
    supported: &[u32],
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> Code,
) -> Nvrtc {
    extern "C" fn create<T, U>(_: *mut Program, _: T, _: T, _: c_int, _: U, _: U) -> Code {
        0
    }
    extern "C" fn destroy(_: *mut Program) -> Code {
        0
    }
    extern "C" fn size(_: Program, len: *mut usize) -> Code {
        // SAFETY: the caller passes a place for the length.
        unsafe { *len = CODE.len() };
        0
    }
    extern "C" fn output(_: Program, to: *mut c_char) -> Code {
        // SAFETY: the caller passes a buffer of the length that `size` states.
        unsafe { to.cast::<u8>().copy_from(CODE.as_ptr(), CODE.len()) };
        0
    }
    extern "C" fn describe(_: Code) -> *const c_char {
        c"NVRTC_ERROR (TEST)".as_ptr()
    }
    let functions = Functions {
        version,
        supported: supported.to_vec(),
        create,
        compile,
        destroy,
        log_size: size,
        log: output,
        cubin_size: size,
        cubin: output,
        ptx_size: size,
        ptx: output,
        describe,
    };
    Nvrtc { functions: Box::leak(Box::new(functions)) }
}

#[test]
fn the_first_compiler_for_the_gpu_is_chosen() {
    let chosen = |libraries: &[Result<Nvrtc, NoNvrtc>], major, minor| {
        let candidates = libraries.iter().map(|library| match library {
            Ok(nvrtc) => Ok(nvrtc.functions),
            Err(none) => Err(none.clone()),
        });
        first_for(candidates, Architecture { major, minor })
            .map(|functions| functions.version)
            .map_err(|none| (none.why, none.is_found))
    };
    let (new, old) = (compiler((13, 0), &[75, 80, 90]), compiler((12, 9), &[50, 60, 70, 75, 80, 90]));
    let both = [Ok(new), Ok(old)];
    assert_eq!(chosen(&both, 6, 1), Ok((12, 9)));
    assert_eq!(chosen(&both, 7, 0), Ok((12, 9)));
    assert_eq!(chosen(&both, 7, 5), Ok((13, 0)));
    assert_eq!(chosen(&both, 12, 0), Ok((13, 0)));
    let absent = || NoNvrtc { why: "no libnvrtc.so.12".into(), is_found: false };
    let too_new = "NVRTC 13.0 is for compute capability 7.5 and later, no libnvrtc.so.12";
    assert_eq!(chosen(&[Ok(new), Err(absent())], 7, 0), Err((too_new.into(), true)));
    assert_eq!(chosen(&[Err(absent())], 7, 0), Err(("no libnvrtc.so.12".into(), false)));
    assert_eq!(wanted(Architecture { major: 7, minor: 0 }), "NVRTC 12 (libnvrtc.so.12)");
    assert!(wanted(Architecture { major: 7, minor: 5 }).contains("libnvrtc.so.13"));
}

#[test]
fn a_library_that_is_not_there_or_does_not_load_is_named() {
    let opened = |name: &str, is_path| {
        let candidate = Candidate { name: name.into(), is_path, opened: OnceLock::new() };
        candidate.opened().err().map(|none| (none.why, none.is_found)).unwrap()
    };
    assert_eq!(opened("libno-such-nvrtc.so", false), ("no libno-such-nvrtc.so".into(), false));
    let (why, is_found) = opened("libno-such-nvrtc.so", true);
    assert!(is_found && why.contains(ENV_NVRTC) && why.contains("libno-such-nvrtc.so"), "{why}");
    // The first library lacks the functions of NVRTC. The second file is not a library.
    let (why, is_found) = opened("libc.so.6", false);
    assert!(!cfg!(target_env = "gnu") || is_found && why.contains("install NVRTC 12 or 13"), "{why}");
    let (why, is_found) = opened(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"), false);
    assert!(is_found && why.contains("does not load"), "{why}");
}
