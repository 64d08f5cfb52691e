use super::*;

#[test]
#[cfg_attr(miri, ignore = "nothing is populated under Miri")]
fn the_content_does_not_change() {
    let mut memory = vec![0; 4 << 20];
    for (start, end) in [(0, 4 << 20), (1, LEAST), (1, LEAST + 1), (4095, (2 << 20) + 4097), (0, 0)] {
        populate(&mut memory[start..end]);
        assert!(memory.iter().all(|&byte| byte == 0));
    }
    memory.fill(7);
    populate(&mut memory);
    assert!(memory.iter().all(|&byte| byte == 7));
}

#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn fresh_pages_become_present() {
    // SAFETY: the range is empty, so the call changes nothing. It fails if the kernel does not support
    // `MADV_POPULATE_WRITE`.
    let is_known = unsafe { libc::madvise(std::ptr::null_mut(), 0, libc::MADV_POPULATE_WRITE) } == 0
            // QEMU's user-mode emulation (tools/arm64/test.sh) accepts `MADV_POPULATE_WRITE`, but ignores it.
            && std::env::var_os("LOCKSTEP_ARM64_TEST").is_none();
    let mut memory = vec![0_u8; 64 << 20];
    let middle = |memory: &mut [u8]| {
        let inside = &mut memory[32 << 20..];
        let before = inside.as_ptr().align_offset(1 << 16);
        is_present(&mut inside[before..])
    };
    if middle(&mut memory) {
        // In a sandbox, or if the memory is locked, mincore reports all pages as present or is not permitted.
        assert!(std::env::var_os("CI").is_none(), "a new allocation is reported as present");
        eprintln!("skipped: a new allocation is reported as present");
        return;
    }
    populate(&mut memory[31 << 20..34 << 20]);
    assert_eq!(middle(&mut memory), is_known);
}
