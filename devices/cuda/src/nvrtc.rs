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

/// The reason why there is no compiler for an architecture.
#[derive(Debug, Clone)]
pub(crate) struct NoNvrtc {
    pub(crate) why: String,
    /// True if a library was found, or named by the environment, but cannot be used.
    pub(crate) is_found: bool,
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
    /// Opens the compiler for an architecture: the library that the environment names, otherwise the first library whose code runs on the
    /// architecture. If there is none, returns the reasons.
    pub(crate) fn open(architecture: Architecture) -> Result<Nvrtc, NoNvrtc> {
        static CANDIDATES: OnceLock<Vec<Candidate>> = OnceLock::new();
        let candidates = CANDIDATES.get_or_init(Candidate::all);
        first_for(candidates.iter().map(Candidate::opened), architecture).map(|functions| Nvrtc { functions })
    }

    pub(crate) fn version(&self) -> (i32, i32) {
        self.functions.version
    }

    /// Returns the supported architectures, as numbers such as 90 for `sm_90`.
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
        let code = match is_virtual {
            true => program.get(functions.ptx_size, functions.ptx),
            false => program.get(functions.cubin_size, functions.cubin),
        }?;
        if code.is_empty() { Err("NVRTC: no code".into()) } else { Ok(code) }
    }
}

/// Names the versions of NVRTC that compile for an architecture, for messages. NVRTC 13 supports compute capability 7.5 and later.
pub(crate) fn wanted(architecture: Architecture) -> &'static str {
    if architecture.number() < 75 {
        "NVRTC 12 (libnvrtc.so.12)"
    } else {
        "NVRTC 12 or 13 (libnvrtc.so.12 or libnvrtc.so.13)"
    }
}

/// A library that may contain the compiler. It is opened if all libraries before it are unsuitable, and it is never closed.
struct Candidate {
    name: OsString,
    is_path: bool,
    opened: OnceLock<Result<Functions, NoNvrtc>>,
}

impl Candidate {
    /// Lists all candidates, the preferred one first.
    fn all() -> Vec<Candidate> {
        let candidate = |name, is_path| Candidate { name, is_path, opened: OnceLock::new() };
        match lockstep_cache::environment::variable(ENV_NVRTC).filter(|path| !path.is_empty()) {
            Some(path) => vec![candidate(path, true)],
            None => NAMES.iter().map(|name| candidate(name.into(), false)).collect(),
        }
    }

    fn opened(&self) -> Result<&Functions, NoNvrtc> {
        self.opened.get_or_init(|| self.open()).as_ref().map_err(Clone::clone)
    }

    fn open(&self) -> Result<Functions, NoNvrtc> {
        let unusable = |why| NoNvrtc { why, is_found: true };
        if self.is_path {
            return open_at(&self.name).and_then(Functions::of).map_err(unusable);
        }
        let name = self.name.display();
        // SAFETY: loading runs the library's constructors, as it does in every program that uses the library.
        let library = unsafe { Library::new(&self.name) }.map_err(|error| {
            let why = words_of(&error);
            let is_found = why != words_without(&name.to_string());
            let why = if is_found { format!("{name} does not load: {why}") } else { format!("no {name}") };
            NoNvrtc { why, is_found }
        })?;
        Functions::of(library).map_err(unusable)
    }
}

/// Returns the first library whose code runs on the architecture. If there is none, returns for each library the reason against it.
fn first_for<'f>(
    candidates: impl Iterator<Item = Result<&'f Functions, NoNvrtc>>,
    architecture: Architecture,
) -> Result<&'f Functions, NoNvrtc> {
    let (mut reasons, mut is_found) = (Vec::new(), false);
    for candidate in candidates {
        match candidate {
            Ok(functions) if functions.supported.iter().any(|&known| known <= architecture.number()) => {
                return Ok(functions);
            }
            Ok(functions) => {
                reasons.push(functions.too_new());
                is_found = true;
            }
            Err(none) => {
                reasons.push(none.why);
                is_found |= none.is_found;
            }
        }
    }
    Err(NoNvrtc { why: reasons.join(", "), is_found })
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
        // SAFETY: the arguments are places for two integers.
        functions.check(unsafe { version(&mut major, &mut minor) })?;
        // SAFETY: the argument is a place for an integer.
        functions.check(unsafe { count(&mut len) })?;
        let mut known = vec![0; usize::try_from(len).unwrap_or(0)];
        // SAFETY: the array has the number of places that the library stated.
        functions.check(unsafe { supported(known.as_mut_ptr()) })?;
        functions.version = (major, minor);
        functions.supported = known.into_iter().filter_map(|number| u32::try_from(number).ok()).collect();
        Ok(functions)
    }

    /// States why this library cannot compile for a GPU that is older than all supported architectures.
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
        // SAFETY: loading runs the library's constructors, as it does in every program that uses the library.
        if let Ok(builtins) = unsafe { Library::new(file.path()) } {
            std::mem::forget(builtins);
        }
    }
    // SAFETY: loading runs the library's constructors, as it does in every program that uses the library.
    unsafe { Library::new(path) }
        .map_err(|error| format!("no NVRTC at {ENV_NVRTC}={}: {}", path.display(), words_of(&error)))
}

/// Returns the loader's message for the case that no library with this name exists. The message depends on the system and on
/// the language of the user. If the library exists, but a library that it needs does not, the loader's message names that
/// library.
fn words_without(name: &str) -> String {
    const NONE: &str = "liblockstep-none.so";
    // SAFETY: no library has this name, so no constructor runs.
    let error = unsafe { Library::new(NONE) }.err();
    error.map_or_else(String::new, |error| words_of(&error).replace(NONE, name))
}

/// Returns the text of an error of the loader.
fn words_of(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
pub(crate) mod tests;
