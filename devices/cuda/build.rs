//! Compiles the kernels as C++ for the emulator.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

#[path = "build/embed.rs"]
mod embed;

fn main() {
    // Cargo watches all files in a folder that is named here.
    for path in ["build.rs", "kernels", "emulator"] {
        println!("cargo::rerun-if-changed={path}");
    }
    let mut sources = Vec::new();
    for ending in ["cu", "cuh"] {
        find(Path::new("kernels"), ending, &mut sources).expect("the folder kernels can be read");
    }
    embed::embed(&sources);
    if env::var_os("CARGO_FEATURE_EMULATOR").is_some() {
        emulator();
    }
}

fn emulator() {
    let mut kernels = Vec::new();
    find(Path::new("kernels"), "cu", &mut kernels).expect("the folder kernels can be read");
    let mut emulator = Vec::new();
    find(Path::new("emulator"), "cpp", &mut emulator).expect("the folder emulator can be read");
    let mut build = cc::Build::new();
    build
        .cpp(true)
        // The code needs no C++ runtime, so that the program also runs where none is installed.
        .cpp_link_stdlib(None)
        .std("c++17")
        .flag("-fno-exceptions")
        .flag("-fno-rtti")
        .flag("-fno-threadsafe-statics")
        // The kernels read and write blocks of bytes as words, as CUDA permits.
        .flag("-fno-strict-aliasing")
        // Only CUDA's compiler knows `#pragma unroll`.
        .flag("-Wno-unknown-pragmas")
        // This level is used in every profile: without optimization, AES of megabytes takes minutes.
        .opt_level(2)
        // The compiler does not know the ending .cu.
        .flag("-xc++")
        .files(kernels)
        .files(emulator)
        // No code refers to a kernel by name: static constructors register the kernels before main. Without this
        // option, the linker omits them.
        .link_lib_modifier("+whole-archive");
    // For tools/cuda_tsan.sh, each CUDA thread is a thread of the operating system, so that ThreadSanitizer can
    // detect races.
    println!("cargo::rerun-if-env-changed=LOCKSTEP_EMULATOR_TSAN");
    if env::var_os("LOCKSTEP_EMULATOR_TSAN").is_some() {
        build
            .define("LOCKSTEP_EMULATOR_THREADS", None)
            .flag("-fsanitize=thread")
            .flag("-Wno-tsan")
            .opt_level(1);
    }
    build.compile("lockstep_cuda_emulator");
    if env::var_os("LOCKSTEP_EMULATOR_TSAN").is_some() {
        println!("cargo::rustc-link-lib=dylib=tsan");
    }
}

/// Appends to `found` all files with this ending in a folder and its subfolders, in an order that does not change.
fn find(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            find(&path, ending, found)?;
        } else if path.extension().is_some_and(|has| has == ending) {
            found.push(path);
        }
    }
    Ok(())
}
