//! NVRTC, NVIDIA's run-time compiler, opened at run time.
#![allow(unsafe_code, reason = "calls of a C library that is opened at run time")]

use std::error::Error;
use std::ffi::{CStr, CString, OsString, c_char, c_int, c_void};
use std::path::Path;
use std::sync::OnceLock;

use libloading::Library;

use crate::archive::Architecture;

/// The environment variable with the path of the library, for systems that do not find the library by name.
pub(crate) const ENV_NVRTC: &str = "LOCKSTEP_NVRTC";

/// File names of the library, the preferred one first.
const NAMES: &[&str] = if cfg!(windows) {
    &["nvrtc64_130_0.dll", "nvrtc64_120_0.dll"]
} else {
    &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]
};

type Program = *mut c_void;
type Code = c_int;

/// The compiler.
#[derive(Clone, Copy)]
pub(crate) struct Nvrtc {
    functions: &'static Functions,
}

struct Functions {
    version: (i32, i32),
    supported: Vec<u32>,
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> Code,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> Code,
    destroy: unsafe extern "C" fn(*mut Program) -> Code,
    log_size: unsafe extern "C" fn(Program, *mut usize) -> Code,
    log: unsafe extern "C" fn(Program, *mut c_char) -> Code,
    cubin_size: unsafe extern "C" fn(Program, *mut usize) -> Code,
    cubin: unsafe extern "C" fn(Program, *mut c_char) -> Code,
    ptx_size: unsafe extern "C" fn(Program, *mut usize) -> Code,
    ptx: unsafe extern "C" fn(Program, *mut c_char) -> Code,
    describe: unsafe extern "C" fn(Code) -> *const c_char,
}

impl Nvrtc {
    /// The compiler for an architecture: the library that the environment names, otherwise the first one whose code runs
    /// on the architecture. If there is none, returns the reasons.
    pub(crate) fn open(architecture: Architecture) -> Result<Nvrtc, String> {
        static CANDIDATES: OnceLock<Vec<Candidate>> = OnceLock::new();
        let candidates = CANDIDATES.get_or_init(Candidate::all);
        first_for(candidates.iter().map(Candidate::opened), architecture).map(|functions| Nvrtc { functions })
    }

    pub(crate) fn version(&self) -> (i32, i32) {
        self.functions.version
    }

    /// Supported architectures, as numbers such as 90 for `sm_90`.
    pub(crate) fn supported(&self) -> &[u32] {
        &self.functions.supported
    }

    /// True if the compiler makes machine code for the architecture, not only PTX for an older one.
    pub(crate) fn makes_machine_code(&self, architecture: Architecture) -> bool {
        self.supported().contains(&architecture.number())
    }

    /// Compiles a program to a cubin. If an option requests a virtual architecture, the result is PTX that ends with a
    /// zero byte.
    pub(crate) fn compile(&self, name: &str, source: &str, options: &[String]) -> Result<Vec<u8>, String> {
        let text =
            |text: &str| CString::new(text).map_err(|_| "a source or an option contains a zero".to_owned());
        let functions = self.functions;
        let (source, name) = (text(source)?, text(&format!("{name}.cu"))?);
        let is_virtual = options.iter().any(|option| option.contains("=compute_"));
        let options = options.iter().map(|option| text(option)).collect::<Result<Vec<_>, _>>()?;
        let pointers: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
        let mut program = Owned { functions, program: std::ptr::null_mut() };
        let none = std::ptr::null();
        // SAFETY: the strings are terminated, `program` is a place for the program, and there are no headers.
        let code = unsafe {
            (functions.create)(&mut program.program, source.as_ptr(), name.as_ptr(), 0, none, none)
        };
        functions.check(code)?;
        // SAFETY: the array has the stated number of options.
        let code =
            unsafe { (functions.compile)(program.program, pointers.len() as c_int, pointers.as_ptr()) };
        if let Err(error) = functions.check(code) {
            let log = program.get(functions.log_size, functions.log).unwrap_or_default();
            return Err(format!("{error}: {}", String::from_utf8_lossy(&log).trim_end_matches('\0')));
        }
        match is_virtual {
            true => program.get(functions.ptx_size, functions.ptx),
            false => program.get(functions.cubin_size, functions.cubin),
        }
    }
}

/// The versions of NVRTC that compile for an architecture, for messages. NVRTC 13 supports compute capability 7.5 and later.
pub(crate) fn wanted(architecture: Architecture) -> &'static str {
    if architecture.number() < 75 {
        "NVRTC 12 (libnvrtc.so.12)"
    } else {
        "NVRTC 12 or 13 (libnvrtc.so.12 or libnvrtc.so.13)"
    }
}

/// A library that may be the compiler. It is opened when the libraries before it do not suffice, and never closed.
struct Candidate {
    name: OsString,
    is_path: bool,
    opened: OnceLock<Result<Functions, String>>,
}

impl Candidate {
    /// All libraries, the preferred one first.
    fn all() -> Vec<Candidate> {
        let candidate = |name, is_path| Candidate { name, is_path, opened: OnceLock::new() };
        match lockstep_cache::environment::variable(ENV_NVRTC).filter(|path| !path.is_empty()) {
            Some(path) => vec![candidate(path, true)],
            None => NAMES.iter().map(|name| candidate(name.into(), false)).collect(),
        }
    }

    fn opened(&self) -> Result<&Functions, String> {
        self.opened.get_or_init(|| self.open()).as_ref().map_err(Clone::clone)
    }

    fn open(&self) -> Result<Functions, String> {
        if self.is_path {
            return Functions::of(open_at(&self.name)?);
        }
        let name = self.name.display();
        // SAFETY: loading runs the library's constructors, like every other use of the library.
        let library = unsafe { Library::new(&self.name) }.map_err(|_| format!("no {name}"))?;
        Functions::of(library)
    }
}

/// The first library whose code runs on the architecture, or the reasons against each of them.
fn first_for<'f>(
    candidates: impl Iterator<Item = Result<&'f Functions, String>>,
    architecture: Architecture,
) -> Result<&'f Functions, String> {
    let mut reasons = Vec::new();
    for candidate in candidates {
        match candidate {
            Ok(functions) if functions.supported.iter().any(|&known| known <= architecture.number()) => {
                return Ok(functions);
            }
            Ok(functions) => reasons.push(functions.too_new()),
            Err(why) => reasons.push(why),
        }
    }
    Err(reasons.join(", "))
}

struct Owned {
    functions: &'static Functions,
    program: Program,
}

impl Owned {
    /// Reads the output of the compiler, or its log.
    fn get(
        &self,
        size: unsafe extern "C" fn(Program, *mut usize) -> Code,
        get: unsafe extern "C" fn(Program, *mut c_char) -> Code,
    ) -> Result<Vec<u8>, String> {
        let mut len = 0;
        // SAFETY: the program is valid, and `len` is a place for the length.
        self.functions.check(unsafe { size(self.program, &mut len) })?;
        let mut bytes = vec![0; len];
        // SAFETY: the buffer has the number of bytes that the library stated.
        self.functions.check(unsafe { get(self.program, bytes.as_mut_ptr().cast()) })?;
        Ok(bytes)
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if !self.program.is_null() {
            // SAFETY: `create` created the program.
            unsafe { (self.functions.destroy)(&mut self.program) };
        }
    }
}

impl Functions {
    fn of(library: Library) -> Result<Functions, String> {
        // The library is never closed, because its functions are used until the program ends.
        let library: &'static Library = Box::leak(Box::new(library));
        macro_rules! symbol {
            ($name:literal) => {
                // SAFETY: nvrtc.h declares the function with the type of the field.
                *unsafe { library.get(concat!($name, "\0").as_bytes()) }
                    .map_err(|_| concat!("libnvrtc has no ", $name, ": install NVRTC 12 or 13").to_owned())?
            };
        }
        let version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Code = symbol!("nvrtcVersion");
        let count: unsafe extern "C" fn(*mut c_int) -> Code = symbol!("nvrtcGetNumSupportedArchs");
        let supported: unsafe extern "C" fn(*mut c_int) -> Code = symbol!("nvrtcGetSupportedArchs");
        let mut functions = Functions {
            version: (0, 0),
            supported: Vec::new(),
            create: symbol!("nvrtcCreateProgram"),
            compile: symbol!("nvrtcCompileProgram"),
            destroy: symbol!("nvrtcDestroyProgram"),
            log_size: symbol!("nvrtcGetProgramLogSize"),
            log: symbol!("nvrtcGetProgramLog"),
            cubin_size: symbol!("nvrtcGetCUBINSize"),
            cubin: symbol!("nvrtcGetCUBIN"),
            ptx_size: symbol!("nvrtcGetPTXSize"),
            ptx: symbol!("nvrtcGetPTX"),
            describe: symbol!("nvrtcGetErrorString"),
        };
        let (mut major, mut minor, mut len) = (0, 0, 0);
        // SAFETY: the arguments are places for integers.
        functions.check(unsafe { version(&mut major, &mut minor) })?;
        // SAFETY: as above.
        functions.check(unsafe { count(&mut len) })?;
        let mut known = vec![0; usize::try_from(len).unwrap_or(0)];
        // SAFETY: the array has the number of places that the library stated.
        functions.check(unsafe { supported(known.as_mut_ptr()) })?;
        functions.version = (major, minor);
        functions.supported = known.into_iter().filter_map(|number| u32::try_from(number).ok()).collect();
        Ok(functions)
    }

    /// The reason against this library for a GPU that is older than all supported architectures.
    fn too_new(&self) -> String {
        let ((major, minor), oldest) = (self.version, self.supported.iter().min().copied().unwrap_or(0));
        format!("NVRTC {major}.{minor} is for compute capability {}.{} and later", oldest / 10, oldest % 10)
    }

    fn check(&self, code: Code) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the function returns a constant of the library for every number.
        let words = unsafe {
            let words = (self.describe)(code);
            if words.is_null() { c"unknown" } else { CStr::from_ptr(words) }
        };
        Err(format!("NVRTC: {}", words.to_string_lossy()))
    }
}

/// Opens the library at a path. NVRTC itself opens a second library, `libnvrtc-builtins`, by name. This function opens
/// that library first, from the same directory, so that NVRTC finds it.
fn open_at(path: &OsString) -> Result<Library, String> {
    let folder = Path::new(path).parent().unwrap_or(Path::new("."));
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for file in files.filter(|file| file.file_name().to_string_lossy().starts_with("libnvrtc-builtins.so")) {
        // SAFETY: loading runs the library's constructors, like every other use of the library.
        if let Ok(builtins) = unsafe { Library::new(file.path()) } {
            std::mem::forget(builtins);
        }
    }
    // SAFETY: as above.
    unsafe { Library::new(path) }.map_err(|error| {
        let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        format!("no NVRTC at {ENV_NVRTC}={}: {why}", path.display())
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A compiler that supports these architectures. Its functions do nothing.
    pub(crate) fn compiler(version: (i32, i32), supported: &[u32]) -> Nvrtc {
        extern "C" fn one<T>(_: T) -> Code {
            0
        }
        extern "C" fn two<T, U>(_: T, _: U) -> Code {
            0
        }
        extern "C" fn three<T, U, V>(_: T, _: U, _: V) -> Code {
            0
        }
        extern "C" fn six<A, B, C, D, E, F>(_: A, _: B, _: C, _: D, _: E, _: F) -> Code {
            0
        }
        extern "C" fn describe(_: Code) -> *const c_char {
            c"test".as_ptr()
        }
        let functions = Functions {
            version,
            supported: supported.to_vec(),
            create: six,
            compile: three,
            destroy: one,
            log_size: two,
            log: two,
            cubin_size: two,
            cubin: two,
            ptx_size: two,
            ptx: two,
            describe,
        };
        Nvrtc { functions: Box::leak(Box::new(functions)) }
    }

    #[test]
    fn the_first_compiler_for_the_gpu_is_chosen() {
        let chosen = |libraries: &[Result<Nvrtc, String>], major, minor| {
            let candidates = libraries.iter().map(|library| match library {
                Ok(nvrtc) => Ok(nvrtc.functions),
                Err(why) => Err(why.clone()),
            });
            first_for(candidates, Architecture { major, minor }).map(|functions| functions.version)
        };
        let (new, old) = (compiler((13, 0), &[75, 80, 90]), compiler((12, 9), &[50, 60, 70, 75, 80, 90]));
        let both = [Ok(new), Ok(old)];
        assert_eq!(chosen(&both, 6, 1), Ok((12, 9)));
        assert_eq!(chosen(&both, 7, 0), Ok((12, 9)));
        assert_eq!(chosen(&both, 7, 5), Ok((13, 0)));
        assert_eq!(chosen(&both, 12, 0), Ok((13, 0)));
        let why = chosen(&[Ok(new), Err("no libnvrtc.so.12".into())], 7, 0).unwrap_err();
        assert_eq!(why, "NVRTC 13.0 is for compute capability 7.5 and later, no libnvrtc.so.12");
        assert_eq!(wanted(Architecture { major: 7, minor: 0 }), "NVRTC 12 (libnvrtc.so.12)");
        assert!(wanted(Architecture { major: 7, minor: 5 }).contains("libnvrtc.so.13"));
    }

    #[test]
    fn a_library_that_is_not_there_is_named() {
        let candidate =
            |is_path| Candidate { name: "libno-such-nvrtc.so".into(), is_path, opened: OnceLock::new() };
        let why = candidate(false).opened().err().unwrap();
        assert_eq!(why, "no libno-such-nvrtc.so");
        let why = candidate(true).opened().err().unwrap();
        assert!(why.contains(ENV_NVRTC) && why.contains("libno-such-nvrtc.so"), "{why}");
    }
}
