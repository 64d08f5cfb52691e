//! Checks of allocations whose size depends on the input or the command line. The size is checked before the allocation, so that
//! the command returns an error if there is too little memory. Without the check, the allocation would abort the process, or the
//! kernel would kill the process later.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use crate::error::{Error, Result};
use crate::text;

/// Sizes below this limit are not compared with the free memory: reading the amount of free memory would take too long
/// for such small sizes.
const SMALL: u64 = 16 << 20;

/// Reserves `more` additional bytes in a buffer.
///
/// `purpose` is a part of the error message. It states what the memory is for and can add advice: "to hold ...; ...".
pub(crate) fn reserve(buffer: &mut Vec<u8>, more: u64, purpose: &str) -> Result<()> {
    let is_reserved = usize::try_from(more).is_ok_and(|more| buffer.try_reserve_exact(more).is_ok());
    let free = if is_reserved && more < SMALL { None } else { free().filter(|&free| free < more) };
    if is_reserved && free.is_none() {
        return Ok(());
    }
    let free = free.map_or(String::new(), |free| format!(" ({} are free)", text::bytes(free)));
    Err(Error::OutOfMemory(format!("not enough memory{free}: {} are needed {purpose}", text::bytes(more))))
}

/// Returns an error if this number of bytes cannot be allocated now. The function is called before other crates allocate memory.
pub fn check(bytes: u64, purpose: &str) -> Result<()> {
    let mut buffer = Vec::new();
    let outcome = reserve(&mut buffer, bytes, purpose);
    // The compiler could remove the allocation of a buffer that is not used.
    std::hint::black_box(&buffer);
    outcome
}

/// Number of bytes of address space for a thread: for its stack, and for an arena of the C library's allocator.
const ADDRESS_SPACE_OF_THREAD: u64 = (2 + 64) << 20;

/// If the address space of the process is limited (`ulimit -v`), returns the number of threads that fit into half of the limit, but at
/// least 1. Without a limit, returns `None`. More threads are dangerous: a new thread without space for its signal stack ends the
/// process.
pub(crate) fn max_threads() -> Option<usize> {
    let limit = getrlimit(Resource::As).current?;
    usize::try_from((limit / 2 / ADDRESS_SPACE_OF_THREAD).max(1)).ok()
}

/// Number of bytes that this process can allocate before the kernel may kill a process. `None` if the number is unknown.
fn free() -> Option<u64> {
    let content = |path| fs::read_to_string(path).unwrap_or_default();
    let machine = free_of_machine(&content("/proc/meminfo"));
    let group = free_of_groups(&content("/proc/self/cgroup"));
    machine.into_iter().chain(group).min()
}

/// The memory that is free or can be freed, plus the free swap space, from `/proc/meminfo`.
fn free_of_machine(meminfo: &str) -> Option<u64> {
    let kib = number(meminfo, "MemAvailable:")? + number(meminfo, "SwapFree:").unwrap_or(0);
    Some(kib << 10)
}

/// The number that follows `name` in the first line that begins with `name`.
pub(crate) fn number(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse().ok()
}

/// The number of bytes that this process can allocate within the limits of its control groups (version 2). This is the minimum
/// over the innermost group and its ancestors. `/proc/self/cgroup` contains the path of the innermost group.
fn free_of_groups(groups: &str) -> Option<u64> {
    let innermost = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let root = Path::new("/sys/fs/cgroup");
    let folder: PathBuf = root.join(innermost);
    folder.ancestors().take_while(|folder| folder.starts_with(root)).filter_map(free_of_group).min()
}

fn free_of_group(folder: &Path) -> Option<u64> {
    let content = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let limit = number(&content("memory.max"), "")?;
    let stat = content("memory.stat");
    // Cached file contents can be freed, so they do not count as used.
    let cached = ["inactive_file ", "active_file "].into_iter().filter_map(|name| number(&stat, name));
    let used = number(&content("memory.current"), "")?.saturating_sub(cached.sum());
    Some(limit.saturating_sub(used))
}

#[cfg(test)]
mod tests;
