//! Device files of GPUs. They show quickly whether a machine has a GPU.

/// Device files of GPUs on Linux: the directory, and the beginning of the file name. In this order, they belong to drivers
/// of the Linux kernel (DRI), NVIDIA, Arm, Qualcomm, Imagination, and WSL.
const NODES: [(&str, &str); 6] = [
    ("/dev/dri", "renderD"),
    ("/dev", "nvidia"),
    ("/dev", "mali"),
    ("/dev", "kgsl"),
    ("/dev", "pvr"),
    ("/dev", "dxg"),
];

/// False if this machine has no GPU. True if it has the device file of a GPU, or if the operating system is not Linux.
pub fn may_have_gpu() -> bool {
    // On other systems, the absence of these files proves nothing.
    !cfg!(target_os = "linux") || NODES.iter().any(|(folder, name)| has_file(folder, name))
}

fn has_file(folder: &str, beginning: &str) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name());
    names.any(|name| name.to_string_lossy().starts_with(beginning))
}
