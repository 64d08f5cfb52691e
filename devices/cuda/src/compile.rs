//! The code of kernels: machine code of the program's archive; otherwise what NVRTC compiles from the sources that are built
//! into the program, kept in the user's cache; otherwise, without NVRTC, PTX of the archive, which the driver compiles.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use lockstep_cache::Cache;
use lockstep_core::backend::Missing;

use crate::archive::{Architecture, Archive, Module};
use crate::nvrtc::{ENV_NVRTC, Nvrtc, wanted};

include!(concat!(env!("OUT_DIR"), "/kernels.rs"));

/// The remedy for a driver that is too old for the machine code of the archive.
pub(crate) const NEWER_DRIVER: &str = "install driver 525 or newer";

/// The module whose kernels use products of bits by the tensor units.
pub(crate) const TENSOR_MODULE: &str = "ghash_tensor";

/// The code of all modules for a GPU.
pub(crate) struct ModuleCode {
    archive: &'static Archive,
    architecture: Architecture,
    nvrtc: FindCompiler,
}

/// Finds the compiler for an architecture, or returns the reason if there is none.
pub(crate) type FindCompiler = fn(Architecture) -> Result<Nvrtc, String>;

/// Where the code of a module comes from, the preferred origin first.
enum Origin {
    /// Machine code of the archive.
    BuiltIn(&'static Module),
    /// NVRTC, or the cache of what it compiled.
    Compiler(Nvrtc),
    /// PTX of the archive, which the driver compiles.
    Ptx(&'static Module),
}

/// The code of a module, in the form that the driver loads.
pub(crate) struct Image {
    pub(crate) bytes: Vec<u8>,
    /// The kind of code, for messages.
    pub(crate) kind: &'static str,
    /// The remedy if the driver does not know the code.
    pub(crate) remedy: String,
}

impl ModuleCode {
    pub(crate) fn new(archive: &'static Archive, architecture: Architecture, nvrtc: FindCompiler) -> Self {
        ModuleCode { archive, architecture, nvrtc }
    }

    /// Checks that there is code for the GPU, or that it can be compiled.
    ///
    /// # Errors
    /// The missing component.
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
        match ((self.nvrtc)(self.architecture), found) {
            (Ok(nvrtc), _) => Ok(Origin::Compiler(nvrtc)),
            (Err(_), Some(module)) => Ok(Origin::Ptx(module)),
            (Err(why), None) => Err(Missing {
                reason: format!(
                    "no machine code for sm_{} in this program, and {why}",
                    self.architecture.number()
                ),
                remedy: format!(
                    "use a package with machine code for this GPU, install {}, or name the library in {ENV_NVRTC}",
                    wanted(self.architecture)
                ),
            }),
        }
    }

    /// True if machine code of the module is in the archive, not only PTX.
    pub(crate) fn is_built_in(&self, module: &str) -> bool {
        let found = self.archive.find(module, self.architecture);
        found.is_some_and(|module| !module.is_ptx())
    }

    /// True if machine code of the module is in the archive or in the cache, so that neither NVRTC nor the driver must
    /// compile it.
    pub(crate) fn is_at_hand(&self, module: &str) -> bool {
        match self.origin(module) {
            Ok(Origin::BuiltIn(_)) => true,
            Ok(Origin::Compiler(nvrtc)) if nvrtc.makes_machine_code(self.architecture) => {
                let kept = |compilation: Compilation| Some(cache()?.contains(&compilation.cache_name()));
                self.compilation(nvrtc, module).and_then(kept).unwrap_or(false)
            }
            _ => false,
        }
    }

    /// True if GHASH can use the tensor units: they multiply bits, and the module was compiled for this architecture or for
    /// an older one of the same major version. PTX for older architectures does not contain the products.
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
    /// The missing component, or the compiler's errors.
    pub(crate) fn image(&self, module: &str) -> Result<Image, Missing> {
        match self.origin(module)? {
            Origin::BuiltIn(module) => Ok(Image {
                bytes: self.archive.unpack(module).map_err(failed)?,
                kind: "machine code",
                remedy: NEWER_DRIVER.into(),
            }),
            Origin::Compiler(nvrtc) => Ok(Image {
                bytes: self.compiled(nvrtc, module).map_err(failed)?,
                kind: "code that NVRTC compiled",
                remedy: "install the newest driver".into(),
            }),
            Origin::Ptx(module) => Ok(Image {
                bytes: self.archive.unpack(module).map_err(failed)?,
                kind: "PTX",
                // The compiler of the archive makes PTX 8.8, which drivers for CUDA 12.9 and later compile.
                remedy: format!("install driver 575 or newer, or {}", wanted(self.architecture)),
            }),
        }
    }

    /// The code that NVRTC makes of a module, from the cache if it is there.
    fn compiled(&self, nvrtc: Nvrtc, module: &str) -> Result<Vec<u8>, String> {
        let no_source = || format!("no source of the module {module}");
        let compilation = self.compilation(nvrtc, module).ok_or_else(no_source)?;
        let (cache, name) = (cache(), compilation.cache_name());
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

/// All inputs that determine the code that NVRTC makes of a module.
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

/// The source of a module with its includes inserted. Each file is inserted once, as with `#pragma once`. Included
/// files that are not among the kernels are for other compilers and are omitted.
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

/// Compiler options. The output is machine code if the compiler supports the architecture. Otherwise it is PTX for the
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

fn cache() -> Option<Cache> {
    Cache::of_user("cuda")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvrtc::tests::compiler;

    const HOPPER: Architecture = Architecture { major: 9, minor: 0 };

    #[test]
    fn includes_are_inserted() {
        let all = [
            ("x/m.cu", "#include \"n.cuh\"\n#include \"../c/o.cuh\"\nlast"),
            ("x/n.cuh", "#pragma once\n#include \"../c/o.cuh\"\nn"),
            ("c/o.cuh", "#pragma once\no\n#include \"../../outside.h\""),
        ];
        let text = source(&all, "m").unwrap();
        let words: Vec<_> = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
        assert_eq!(words, ["o", "n", "last"]);
        assert!(text.ends_with("#line 3 \"x/m.cu\"\nlast\n"));
        assert!(source(&all, "n").is_none());
    }

    #[test]
    fn every_module_has_its_source() {
        let modules: Vec<_> = SOURCES.iter().filter_map(|(path, _)| path.strip_suffix(".cu")).collect();
        assert!(modules.contains(&"helpers"));
        for module in modules {
            let name = module.rsplit('/').next().unwrap();
            let text = source(SOURCES, name).unwrap();
            assert!(text.contains("using u8 =") && !text.contains("#include"), "{name}");
        }
    }

    #[test]
    fn unknown_architectures_get_ptx() {
        assert_eq!(options(&[80, 90], HOPPER)[0], "--gpu-architecture=sm_90");
        assert_eq!(
            options(&[80, 90], Architecture { major: 13, minor: 0 })[0],
            "--gpu-architecture=compute_90"
        );
    }

    #[test]
    fn the_cache_name_depends_on_all_inputs() {
        let name = |source: &str, options: &[&str], version| {
            let options = options.iter().map(|&option| option.into()).collect();
            Compilation { module: "m", source: source.into(), options, version }.cache_name()
        };
        let first = name("source", &["a"], (13, 0));
        assert_ne!(first, name("source ", &["a"], (13, 0)));
        assert_ne!(first, name("source", &["a"], (13, 1)));
        assert_ne!(first, name("source", &[], (13, 0)));
    }

    /// An archive with one module, whose code is stored.
    fn archive(module: &str, target: &str) -> &'static Archive {
        let bytes = format!("lockstep-kernels 1\nunit 0 4 4\n{module} {target} 0 4\n\ncode");
        Box::leak(Box::new(Archive::parse(bytes.into_bytes().leak()).unwrap()))
    }

    fn no_nvrtc(_: Architecture) -> Result<Nvrtc, String> {
        Err("no libnvrtc.so.13".into())
    }

    /// A compiler for compute capability 9.0 and older ones.
    fn nvrtc(_: Architecture) -> Result<Nvrtc, String> {
        Ok(compiler((0, 0), &[60, 80, 90]))
    }

    #[test]
    fn machine_code_comes_before_nvrtc_and_nvrtc_before_ptx() {
        let origin =
            |target, nvrtc: FindCompiler| match ModuleCode::new(archive("helpers", target), HOPPER, nvrtc)
                .origin("helpers")
            {
                Ok(Origin::BuiltIn(_)) => "archive".to_owned(),
                Ok(Origin::Compiler(_)) => "NVRTC".into(),
                Ok(Origin::Ptx(_)) => "PTX".into(),
                Err(missing) => missing.to_string(),
            };
        assert_eq!(origin("sm_90", nvrtc), "archive");
        assert_eq!(origin("ptx", nvrtc), "NVRTC");
        assert_eq!(origin("sm_80", nvrtc), "NVRTC");
        assert_eq!(origin("ptx", no_nvrtc), "PTX");
        let missing = origin("sm_80", no_nvrtc);
        assert!(missing.contains("and no libnvrtc.so.13") && missing.contains("NVRTC 12 or 13"), "{missing}");
        let volta = Architecture { major: 7, minor: 0 };
        let missing = ModuleCode::new(archive("helpers", "sm_80"), volta, no_nvrtc).available().unwrap_err();
        assert!(missing.remedy.contains("install NVRTC 12 (libnvrtc.so.12)"), "{missing}");
    }

    #[test]
    fn code_that_the_driver_compiles_is_not_at_hand() {
        let is_at_hand =
            |target| ModuleCode::new(archive("helpers", target), HOPPER, no_nvrtc).is_at_hand("helpers");
        assert!(is_at_hand("sm_90") && !is_at_hand("ptx") && !is_at_hand("sm_80"));
    }

    /// The products of bits are in code for compute capability 8.0 to 9.0 only.
    #[test]
    fn tensor_units_are_used_with_code_for_this_gpu_only() {
        let has = |target, nvrtc: FindCompiler, major, minor| {
            let architecture = Architecture { major, minor };
            ModuleCode::new(archive("ghash_tensor", target), architecture, nvrtc).has_tensor_bits()
        };
        assert!(has("sm_80", no_nvrtc, 8, 6) && has("sm_90", no_nvrtc, 9, 0));
        assert!(!has("ptx", no_nvrtc, 9, 0), "compute_60");
        assert!(!has("sm_80", no_nvrtc, 9, 0), "no code");
        assert!(has("ptx", nvrtc, 8, 0) && has("ptx", nvrtc, 9, 0));
        assert!(!has("ptx", nvrtc, 8, 9), "NVRTC makes PTX of an older architecture");
        assert!(!has("sm_100", nvrtc, 10, 0) && !has("sm_70", nvrtc, 7, 0), "no products of bits");
    }

    /// Modules compile if NVRTC is installed or LOCKSTEP_NVRTC names the library. The bitsliced modules take minutes
    /// and are compiled only if LOCKSTEP_TEST_ALL_KERNELS is set.
    #[test]
    fn nvrtc_compiles_modules() {
        let Ok(nvrtc) = Nvrtc::open(HOPPER) else {
            let why = format!("NOT TESTED: compilation at run time: no libnvrtc; name it in {ENV_NVRTC}\n");
            let _ = std::io::Write::write_all(&mut std::io::stderr(), why.as_bytes());
            return;
        };
        let modules = SOURCES.iter().filter_map(|(path, _)| path.strip_suffix(".cu")?.rsplit('/').next());
        let all = std::env::var_os("LOCKSTEP_TEST_ALL_KERNELS").is_some();
        for module in modules.filter(|module| all || ["helpers", "expand", "global_sbox"].contains(module)) {
            let text = source(SOURCES, module).unwrap();
            let code = nvrtc.compile(module, &text, &options(nvrtc.supported(), HOPPER)).unwrap();
            assert!(code.starts_with(b"\x7fELF"), "{module}");
        }
        let ptx =
            nvrtc.compile("helpers", &source(SOURCES, "helpers").unwrap(), &options(&[80], HOPPER)).unwrap();
        assert!(ptx.ends_with(&[0]) && ptx.windows(5).any(|bytes| bytes == b"edges"));
        let error =
            nvrtc.compile("wrong", "this is no C++", &options(nvrtc.supported(), HOPPER)).unwrap_err();
        assert!(error.contains("error"), "{error}");
    }
}
