use std::os::unix::fs::MetadataExt;

use super::*;

/// Writes slices of these lengths of the content to a new file, and returns the space on the disk in bytes.
fn write(content: &[u8], lengths: &[usize]) -> u64 {
    let mut file = tempfile::tempfile().unwrap();
    let (mut holes, mut rest) = (Holes::default(), content);
    let mut slices = Vec::new();
    for &length in lengths.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (slice, later) = rest.split_at(length.min(rest.len()));
        slices.push(IoSlice::new(slice));
        rest = later;
    }
    let mut left = &mut slices[..];
    while !left.is_empty() {
        let done = holes.write(&file, left).unwrap();
        assert!(done > 0 || left.iter().all(|slice| slice.is_empty()));
        IoSlice::advance_slices(&mut left, done);
    }
    holes.finish(&file).unwrap();
    let mut back = Vec::new();
    file.rewind().unwrap();
    io::Read::read_to_end(&mut file, &mut back).unwrap();
    assert!(back == content, "{lengths:?}");
    file.metadata().unwrap().blocks() * 512
}

#[test]
fn the_content_is_the_same_for_all_slices_and_holes() {
    let blocks = [0_u8, 1, 0, 0, 2, 3, 0, 0, 0, 0, 4, 0];
    for end in [0, 1, 100, BLOCK] {
        let mut content = vec![0; blocks.len() * BLOCK + end];
        for (at, &value) in blocks.iter().enumerate() {
            // Only the last byte of a block differs from zero.
            content[(at + 1) * BLOCK - 1] = value;
        }
        for lengths in [&[4 * BLOCK][..], &[BLOCK], &[1 << 20], &[1000], &[5000, 0, 3 * BLOCK], &[1, BLOCK]] {
            write(&content, lengths);
        }
    }
}

#[test]
fn zeros_take_no_space() {
    let mut content = vec![0; 4 << 20];
    content[2 << 20] = 1;
    // The file system of the tests supports holes if this file has a hole.
    let sparse = tempfile::tempfile().unwrap();
    sparse.set_len(4 << 20).unwrap();
    if sparse.metadata().unwrap().blocks() > 0 {
        eprintln!("NOT TESTED: this file system has no holes");
        return;
    }
    assert!(write(&content, &[4 * BLOCK]) <= 64 << 10);
    assert!(write(&vec![1; 1 << 20], &[4 * BLOCK]) >= 1 << 20);
}
