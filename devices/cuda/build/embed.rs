//! Writes the data of the kernels that the program contains: their sources, for compilation at run time, and an archive of machine code if
//! LOCKSTEP_CUDA_KERNELS names one (tools/cuda_kernels.py).

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

const ARCHIVE: &str = "LOCKSTEP_CUDA_KERNELS";

/// True if the archive has as many bytes after its index as all units that the index lists.
fn is_complete(archive: &[u8]) -> bool {
    let Some(end) = archive.windows(2).position(|two| two == b"\n\n") else { return false };
    let index = String::from_utf8_lossy(&archive[..end]);
    let lens =
        index.lines().filter_map(|line| line.strip_prefix("unit ")?.split(' ').nth(1)?.parse::<usize>().ok());
    lens.sum::<usize>() == archive.len() - end - 2
}

/// Writes kernels.rs and kernels.archive to OUT_DIR; `sources` are paths below the folder kernels.
pub(crate) fn embed(sources: &[std::path::PathBuf]) {
    println!("cargo::rerun-if-env-changed={ARCHIVE}");
    let mut text = String::from("pub(crate) static SOURCES: &[(&str, &str)] = &[\n");
    for path in sources {
        let name = path.strip_prefix("kernels").expect("below kernels").display().to_string();
        // The compiler resolves the folder, so that a checkout can be moved together with its target folder.
        let below = format!("/kernels/{name}");
        let _ =
            writeln!(text, "    ({name:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {below:?}))),");
    }
    text += "];\n";
    let out = env::var("OUT_DIR").expect("cargo sets it");
    let out = Path::new(&out);
    fs::write(out.join("kernels.rs"), text).expect("OUT_DIR can be written to");
    let archive = match env::var_os(ARCHIVE).filter(|path| !path.is_empty()) {
        Some(path) => {
            println!("cargo::rerun-if-changed={}", path.display());
            let archive =
                fs::read(&path).unwrap_or_else(|error| panic!("{ARCHIVE}: {}: {error}", path.display()));
            let is_one = archive.starts_with(b"lockstep-kernels 1\n");
            assert!(is_one, "{ARCHIVE}: {} is no archive of tools/cuda_kernels.py", path.display());
            assert!(is_complete(&archive), "{ARCHIVE}: {} is truncated or damaged", path.display());
            archive
        }
        None => Vec::new(),
    };
    fs::write(out.join("kernels.archive"), archive).expect("OUT_DIR can be written to");
}
