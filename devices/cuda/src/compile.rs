//! Machine code of kernels. The code is in the program's archive or in the user's cache. Otherwise NVRTC compiles it from the
//! sources that are built into the program.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use lockstep_cache::Cache;
use lockstep_core::backend::Missing;

use crate::archive::{Architecture, Archive};
use crate::nvrtc::{ENV_NVRTC, Nvrtc};

include!(concat!(env!("OUT_DIR"), "/kernels.rs"));

/// Checks that there is code for the architecture, or that it can be compiled.
///
/// # Errors
/// The missing component.
pub(crate) fn available(archive: &Archive, architecture: Architecture) -> Result<(), Missing> {
    if !architecture.is_supported() {
        let Architecture { major, minor } = architecture;
        return Err(Missing {
            reason: format!("compute capability {major}.{minor} is not supported"),
            remedy: "use a GPU with compute capability 6.0 or newer".into(),
        });
    }
    if archive.find("helpers", architecture).is_some() {
        return Ok(());
    }
    Nvrtc::open().map(|_| ()).map_err(|why| Missing {
        reason: format!("no machine code for sm_{} in this program, and {why}", architecture.number()),
        remedy: format!(
            "use a package with machine code for this GPU, install NVRTC 12 or 13 (libnvrtc.so.13), or name the library in {ENV_NVRTC}"
        ),
    })
}

/// True if the machine code of a module is in the archive or in the cache, so that neither NVRTC nor the driver must compile it.
pub(crate) fn is_at_hand(archive: &Archive, module: &str, architecture: Architecture) -> bool {
    is_built_in(archive, module, architecture)
        || (Nvrtc::open().ok())
            .filter(|_| archive.find(module, architecture).is_none())
            .and_then(|nvrtc| {
                let source = source(SOURCES, module)?;
                let options = options(nvrtc.supported(), architecture);
                Some(cache()?.contains(&cache_name(module, &source, &options, nvrtc.version())))
            })
            .unwrap_or(false)
}

/// The code of a module, in the form that the driver loads.
///
/// # Errors
/// The missing component, or the compiler's errors.
pub(crate) fn image(archive: &Archive, module: &str, architecture: Architecture) -> Result<Vec<u8>, Missing> {
    let failed = |why: String| Missing { reason: why, remedy: "please report this".into() };
    if let Some(module) = archive.find(module, architecture) {
        return archive.unpack(module).map_err(failed);
    }
    available(archive, architecture)?;
    let nvrtc = Nvrtc::open().map_err(failed)?;
    let source =
        source(SOURCES, module).ok_or_else(|| failed(format!("no source of the module {module}")))?;
    let options = options(nvrtc.supported(), architecture);
    let (cache, name) = (cache(), cache_name(module, &source, &options, nvrtc.version()));
    let kept = cache.as_ref().and_then(|cache| cache.read(&name, MOST_CODE));
    if let Some(code) = kept.filter(|code| !code.is_empty()) {
        return Ok(code);
    }
    let code = nvrtc.compile(module, &source, &options).map_err(failed)?;
    if let Some(cache) = cache {
        // If the cache cannot be written, the module is compiled again next time.
        let _ = cache.write(&name, &code);
    }
    Ok(code)
}

/// True if machine code of the module for the architecture is in the archive, not only PTX.
pub(crate) fn is_built_in(archive: &Archive, module: &str, architecture: Architecture) -> bool {
    archive.find(module, architecture).is_some_and(|module| !module.is_ptx())
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

/// The name of a cache file. It depends on all inputs that determine the machine code.
fn cache_name(module: &str, source: &str, options: &[String], version: (i32, i32)) -> String {
    format!("{module}-{}.bin", Cache::name_of(&format!("{version:?} {options:?} {source}")))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let options = ["a".to_owned()];
        let name = cache_name("m", "source", &options, (13, 0));
        assert_ne!(name, cache_name("m", "source ", &options, (13, 0)));
        assert_ne!(name, cache_name("m", "source", &options, (13, 1)));
        assert_ne!(name, cache_name("m", "source", &[], (13, 0)));
    }

    /// Modules compile if NVRTC is installed or LOCKSTEP_NVRTC names the library. The bitsliced modules take minutes
    /// and are compiled only if LOCKSTEP_TEST_ALL_KERNELS is set.
    #[test]
    fn nvrtc_compiles_modules() {
        let Ok(nvrtc) = Nvrtc::open() else {
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
