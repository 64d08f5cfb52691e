//! Provides the code of kernels. The code has one of three origins, which are tried in this order:
//!
//! 1. machine code of the archive in the program;
//! 2. code that NVRTC compiles from the sources in the program, or that it has compiled before and that is in the user's cache;
//! 3. PTX of the archive, which the driver compiles, if there is no NVRTC or if NVRTC fails.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use lockstep_cache::Cache;
use lockstep_core::backend::Missing;

use crate::archive::{Architecture, Archive, Module};
use crate::nvrtc::{ENV_NVRTC, NoNvrtc, Nvrtc, wanted};

include!(concat!(env!("OUT_DIR"), "/kernels.rs"));

/// The remedy for a driver that is too old for the machine code of the archive.
pub(crate) const NEWER_DRIVER: &str = "install driver 525 or newer";

/// The module of the kernels that compute products of bits with the tensor units.
pub(crate) const TENSOR_MODULE: &str = "ghash_tensor";

/// The code of all modules for a GPU.
pub(crate) struct ModuleCode {
    archive: &'static Archive,
    architecture: Architecture,
    compiler: Compiler,
    /// The reason why PTX of the archive is used although NVRTC was found.
    nvrtc_failure: OnceLock<String>,
}

/// Access to the run-time compiler and to its cache. Tests replace these functions.
#[derive(Clone, Copy)]
pub(crate) struct Compiler {
    /// Finds NVRTC for an architecture, or returns the reason if there is none.
    pub(crate) nvrtc: fn(Architecture) -> Result<Nvrtc, NoNvrtc>,
    /// The cache for code that NVRTC has compiled.
    pub(crate) cache: fn() -> Option<Cache>,
}

impl Compiler {
    /// NVRTC of this machine, and the cache of the user.
    pub(crate) const OF_MACHINE: Compiler = Compiler { nvrtc: Nvrtc::open, cache: || Cache::of_user("cuda") };
}

/// The origin of the code of a module. Preferred origins come first.
enum Origin {
    /// Machine code of the archive.
    BuiltIn(&'static Module),
    /// NVRTC, or the cache for code that NVRTC has compiled.
    Compiler(Nvrtc),
    /// PTX of the archive, which the driver compiles, and the reason why NVRTC does not compile although it was found.
    Ptx(&'static Module, Option<String>),
}

/// The code of a module, in the form that the driver loads.
pub(crate) struct Image {
    pub(crate) bytes: Vec<u8>,
    /// The kind of code, for messages.
    pub(crate) kind: &'static str,
    /// The remedy if the driver does not accept the code.
    pub(crate) remedy: String,
    /// True for code that NVRTC compiled.
    pub(crate) is_compiled: bool,
}

impl ModuleCode {
    pub(crate) fn new(archive: &'static Archive, architecture: Architecture, compiler: Compiler) -> Self {
        ModuleCode { archive, architecture, compiler, nvrtc_failure: OnceLock::new() }
    }

    /// The reason why PTX of the archive is used although NVRTC was found; `None` as long as no such PTX is used.
    pub(crate) fn nvrtc_failure(&self) -> Option<&str> {
        self.nvrtc_failure.get().map(String::as_str)
    }

    /// Checks that there is code for the GPU, or that it can be compiled.
    ///
    /// # Errors
    /// [`Missing`] with the component that is missing.
    pub(crate) fn available(&self) -> Result<(), Missing> {
        self.origin("helpers").map(|_| ())
    }

    fn origin(&self, module: &str) -> Result<Origin, Missing> {
        let Architecture { major, minor } = self.architecture;
        if !self.architecture.is_supported() {
            return Err(Missing {
                reason: format!("compute capability {major}.{minor} is not supported"),
                remedy: "use a GPU with compute capability 6.0 or newer".into(),
            });
        }
        let found = self.archive.find(module, self.architecture);
        if let Some(module) = found.filter(|module| !module.is_ptx()) {
            return Ok(Origin::BuiltIn(module));
        }
        // PTX of the archive does not contain the instructions for products on the tensor units.
        let ptx = found.filter(|_| module != TENSOR_MODULE);
        // If NVRTC has failed once, it is not tried again, because a compilation may take minutes.
        if let Some(why) = self.nvrtc_failure() {
            let ptx = ptx.map(|ptx| Origin::Ptx(ptx, Some(why.into())));
            return ptx.ok_or_else(|| self.without_code(why));
        }
        match ((self.compiler.nvrtc)(self.architecture), ptx) {
            (Ok(nvrtc), _) => Ok(Origin::Compiler(nvrtc)),
            (Err(none), Some(ptx)) => Ok(Origin::Ptx(ptx, none.is_found.then_some(none.why))),
            (Err(none), None) => Err(self.without_code(&none.why)),
        }
    }

    /// The error for a GPU for which there is no code.
    fn without_code(&self, why: &str) -> Missing {
        Missing {
            reason: format!(
                "no machine code for sm_{} in this program, and {why}",
                self.architecture.number()
            ),
            remedy: format!(
                "use a package with machine code for this GPU, install {}, or name the library in {ENV_NVRTC}",
                wanted(self.architecture)
            ),
        }
    }

    /// True if the archive contains machine code of the module, not only PTX.
    pub(crate) fn is_built_in(&self, module: &str) -> bool {
        let found = self.archive.find(module, self.architecture);
        found.is_some_and(|module| !module.is_ptx())
    }

    /// True if the archive or the cache contains machine code of the module, so that neither NVRTC nor the driver must compile
    /// the module.
    pub(crate) fn is_at_hand(&self, module: &str) -> bool {
        match self.origin(module) {
            Ok(Origin::BuiltIn(_)) => true,
            Ok(Origin::Compiler(nvrtc)) if nvrtc.makes_machine_code(self.architecture) => {
                let kept = |compilation: Compilation| {
                    Some((self.compiler.cache)()?.contains(&compilation.cache_name()))
                };
                self.compilation(nvrtc, module).and_then(kept).unwrap_or(false)
            }
            _ => false,
        }
    }

    /// True if GHASH can use the tensor units. This requires that they multiply bits, and that the module was compiled for this
    /// architecture or for an older architecture with the same major version. PTX for older architectures does not contain
    /// these products.
    pub(crate) fn has_tensor_bits(&self) -> bool {
        self.architecture.has_tensor_bits()
            && match self.origin(TENSOR_MODULE) {
                Ok(Origin::BuiltIn(_)) => true,
                Ok(Origin::Compiler(nvrtc)) => nvrtc.makes_machine_code(self.architecture),
                _ => false,
            }
    }

    /// The code of a module.
    ///
    /// # Errors
    /// [`Missing`] with the component that is missing, or with the messages of the compiler.
    pub(crate) fn image(&self, module: &str) -> Result<Image, Missing> {
        match self.origin(module)? {
            Origin::BuiltIn(module) => Ok(Image {
                bytes: self.archive.unpack(module).map_err(failed)?,
                kind: "machine code",
                remedy: NEWER_DRIVER.into(),
                is_compiled: false,
            }),
            Origin::Compiler(nvrtc) => match self.compiled(nvrtc, module) {
                Ok(bytes) => Ok(Image {
                    bytes,
                    kind: "code that NVRTC compiled",
                    remedy: "install the newest driver, or use a package with machine code for this GPU"
                        .into(),
                    is_compiled: true,
                }),
                Err(why) => {
                    let ((major, minor), why) = (nvrtc.version(), why.lines().next().unwrap_or_default());
                    self.ptx_instead(
                        module,
                        format!("NVRTC {major}.{minor} does not compile {module}: {why}"),
                    )
                }
            },
            Origin::Ptx(ptx, why) => {
                if let Some(why) = why {
                    self.nvrtc_failure.get_or_init(|| why);
                }
                self.ptx(ptx)
            }
        }
    }

    /// PTX of the archive, which replaces the code that NVRTC could not compile.
    ///
    /// # Errors
    /// The reason why NVRTC failed, if the archive has no PTX of the module.
    pub(crate) fn ptx_instead(&self, module: &str, why: String) -> Result<Image, Missing> {
        let found = self.archive.find(module, self.architecture);
        let Some(ptx) = found.filter(|found| found.is_ptx() && module != TENSOR_MODULE) else {
            return Err(self.without_code(&why));
        };
        self.nvrtc_failure.get_or_init(|| why);
        self.ptx(ptx)
    }

    fn ptx(&self, module: &'static Module) -> Result<Image, Missing> {
        Ok(Image {
            bytes: self.archive.unpack(module).map_err(failed)?,
            kind: "PTX",
            // The compiler of the archive makes PTX 8.8, which drivers for CUDA 12.9 and later compile.
            remedy: format!("install driver 575 or newer, or {}", wanted(self.architecture)),
            is_compiled: false,
        })
    }

    /// The code of a module. It comes from the cache or, if the cache does not contain it, from NVRTC.
    fn compiled(&self, nvrtc: Nvrtc, module: &str) -> Result<Vec<u8>, String> {
        let no_source = || format!("no source of the module {module}");
        let compilation = self.compilation(nvrtc, module).ok_or_else(no_source)?;
        let (cache, name) = ((self.compiler.cache)(), compilation.cache_name());
        let kept = cache.as_ref().and_then(|cache| cache.read(&name, MOST_CODE));
        if let Some(code) = kept.filter(|code| !code.is_empty()) {
            return Ok(code);
        }
        let code = nvrtc.compile(module, &compilation.source, &compilation.options)?;
        if let Some(cache) = cache {
            // If the cache cannot be written, the module is compiled again next time.
            let _ = cache.write(&name, &code);
        }
        Ok(code)
    }

    /// The inputs of the compilation of a module; `None` if there is no such module.
    fn compilation<'m>(&self, nvrtc: Nvrtc, module: &'m str) -> Option<Compilation<'m>> {
        let options = options(nvrtc.supported(), self.architecture);
        Some(Compilation { module, source: source(SOURCES, module)?, options, version: nvrtc.version() })
    }
}

fn failed(why: String) -> Missing {
    Missing { reason: why, remedy: "please report this".into() }
}

/// All inputs that determine the code that NVRTC generates for a module.
struct Compilation<'m> {
    module: &'m str,
    source: String,
    options: Vec<String>,
    version: (i32, i32),
}

impl Compilation<'_> {
    /// The name of the cache file.
    fn cache_name(&self) -> String {
        let Compilation { module, source, options, version } = self;
        format!("{module}-{}.bin", Cache::name_of(&format!("{version:?} {options:?} {source}")))
    }
}

/// The source of a module with its includes inserted. Each file is inserted once, as with `#pragma once`. Included files that
/// do not belong to the kernels are needed only by other compilers, and are omitted.
fn source(all: &[(&str, &str)], module: &str) -> Option<String> {
    let (path, _) = all.iter().find(|(path, _)| {
        Path::new(path).file_name().is_some_and(|name| name.to_str() == Some(&format!("{module}.cu")))
    })?;
    let mut text = String::new();
    insert(all, Path::new(path), &mut HashSet::new(), &mut text);
    Some(text)
}

fn insert(all: &[(&str, &str)], path: &Path, seen: &mut HashSet<PathBuf>, text: &mut String) {
    let Some((name, content)) = all.iter().find(|(name, _)| Path::new(name) == path) else { return };
    if !seen.insert(path.into()) {
        return;
    }
    text.push_str(&format!("#line 1 \"{name}\"\n"));
    for (number, line) in content.lines().enumerate() {
        let included = line.trim().strip_prefix("#include \"").and_then(|rest| rest.strip_suffix('"'));
        match included {
            Some(included) => {
                insert(all, &joined(path, included), seen, text);
                text.push_str(&format!("#line {} \"{name}\"\n", number + 2));
            }
            None if line.trim() == "#pragma once" => text.push('\n'),
            None => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
}

/// The path that an include in `file` refers to.
fn joined(file: &Path, included: &str) -> PathBuf {
    let mut path = file.parent().unwrap_or(Path::new("")).to_path_buf();
    for part in included.split('/') {
        match part {
            ".." if path.pop() => {}
            "." => {}
            part => path.push(part),
        }
    }
    path
}

/// Returns the options of the compiler. The output is machine code if the compiler supports the architecture. Otherwise it is PTX for the
/// newest older architecture, and the driver compiles the PTX.
fn options(supported: &[u32], architecture: Architecture) -> Vec<String> {
    let number = architecture.number();
    let target = match supported.contains(&number) {
        true => format!("sm_{number}"),
        false => {
            let older = supported.iter().copied().filter(|&known| known < number).max();
            format!("compute_{}", older.unwrap_or(number))
        }
    };
    vec![format!("--gpu-architecture={target}"), "--std=c++17".into()]
}

/// Maximum number of bytes that are read from a cache file. Every module is much shorter.
const MOST_CODE: u64 = 256 << 20;

#[cfg(test)]
mod tests;
