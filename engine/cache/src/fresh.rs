//! Fresh memory: pages that the process has reserved but not yet written to.
#![allow(unsafe_code, reason = "calls of the operating system about a range of memory")]

/// Minimum number of bytes. For a shorter range, the system calls cost more than they save.
const LEAST: usize = 128 << 10;

/// Makes the pages of fresh memory present with one system call (Linux 5.14 or later), so that later writes to these pages
/// cause no page faults. With pages of 4 KiB, the page faults take longer than the writes. The content does not change.
/// Call this function shortly before the memory is written, with a range that fits in the cache: the kernel zeroes the
/// pages, which are then still in the cache when the memory is written.
///
/// The function does nothing for short ranges and for memory whose middle page is present already. It also does nothing on
/// other systems. Errors are ignored, because later writes are correct without this function and only cause page faults.
pub fn populate(memory: &mut [u8]) {
    if memory.len() >= LEAST {
        populate_pages(memory);
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
fn populate_pages(memory: &mut [u8]) {
    // SAFETY: sysconf has no preconditions.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(0);
    if !page.is_power_of_two() {
        return;
    }
    // Only whole pages are populated. The partial pages at both ends are left out: they contain other data too, so they
    // are likely to be present.
    let before = memory.as_ptr().align_offset(page);
    let Some(pages) = memory.get_mut(before..) else { return };
    let len = pages.len() / page * page;
    if len == 0 || is_present(&mut pages[len / page / 2 * page..]) {
        return;
    }
    // SAFETY: the range consists of whole pages of memory that is borrowed exclusively, and the call does not change
    // the content of the pages.
    unsafe { libc::madvise(pages.as_mut_ptr().cast(), len, libc::MADV_POPULATE_WRITE) };
}

/// True if the first page of this memory is present, or if the system call fails. Pages that are present must not be populated
/// again, because that would take at least a third of the time of writing them.
#[cfg(all(target_os = "linux", not(miri)))]
fn is_present(memory: &mut [u8]) -> bool {
    let mut present = 0_u8;
    // SAFETY: a range of length 1 is in one page, whatever the page size, so mincore writes one byte of output. The call
    // neither reads nor writes memory of the range, and fails if the range does not start at a page.
    let outcome = unsafe { libc::mincore(memory.as_mut_ptr().cast(), 1, (&raw mut present).cast()) };
    outcome != 0 || present & 1 == 1
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn populate_pages(_: &mut [u8]) {}

#[cfg(test)]
mod tests;
