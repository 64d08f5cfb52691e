//! The data of the kernels that the program contains: their sources, for compilation at run time, and machine code if
//! LOCKSTEP_CUDA_KERNELS names a folder that contains `MODULE.sm_90.cubin` and `MODULE.ptx` for each `MODULE.cu`.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

const FOLDER: &str = "LOCKSTEP_CUDA_KERNELS";

/// Writes kernels.rs to OUT_DIR; `sources` are paths below the folder kernels.
pub(crate) fn embed(sources: &[std::path::PathBuf]) {
    println!("cargo::rerun-if-env-changed={FOLDER}");
    let mut text = String::from("pub(crate) static SOURCES: &[(&str, &str)] = &[\n");
    let mut modules = Vec::new();
    for path in sources {
        let name = path.strip_prefix("kernels").expect("below kernels").display().to_string();
        // The compiler resolves the folder, so that a checkout can be moved together with its target folder.
        let below = format!("/kernels/{name}");
        let _ =
            writeln!(text, "    ({name:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {below:?}))),");
        if path.extension().is_some_and(|ending| ending == "cu") {
            modules.push(path.file_stem().expect("a file").to_string_lossy().into_owned());
        }
    }
    text += "];\npub(crate) static MACHINE_CODE: &[(&str, &str, &[u8])] = &[\n";
    if let Some(folder) = env::var_os(FOLDER).filter(|folder| !folder.is_empty()) {
        println!("cargo::rerun-if-changed={}", folder.display());
        let entries =
            fs::read_dir(&folder).unwrap_or_else(|error| panic!("{FOLDER}: {}: {error}", folder.display()));
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("the folder can be read").file_name()).collect();
        names.sort();
        for name in names {
            let Some(name) = name.to_str() else { continue };
            let target = match name.strip_suffix(".cubin") {
                Some(stem) => stem.split_once('.'),
                None => name.strip_suffix(".ptx").map(|stem| (stem, "ptx")),
            };
            let Some((module, target)) =
                target.filter(|(module, _)| modules.iter().any(|known| known == module))
            else {
                continue;
            };
            let full = fs::canonicalize(Path::new(&folder).join(name)).expect("it was listed");
            let _ = writeln!(text, "    ({module:?}, {target:?}, include_bytes!({full:?})),");
        }
    }
    text += "];\n";
    let out = env::var("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&out).join("kernels.rs"), text).expect("OUT_DIR can be written to");
}
