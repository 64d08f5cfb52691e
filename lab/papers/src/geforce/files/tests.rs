use super::*;

#[test]
fn passes_include_the_padding() {
    // File 1 has 210.94 textures of 4 MiB, or 52.7 of 16 MiB. File 7 has 28.1 textures of 4 MiB. The last texture counts as a whole one,
    // and the padding as one more.
    assert_eq!(File::of(1).passes(512), 212);
    assert_eq!(File::of(1).passes(1024), 54);
    assert_eq!(File::of(1).passes(256), 845);
    assert_eq!(File::of(5).passes(512), 107);
    assert_eq!(File::of(7).passes(512), 30);
    // If the file consists of whole textures, there is no partial texture.
    assert_eq!(File { bytes: 2 << 22, ..File::of(2) }.passes(512), 3);
}

#[test]
fn contents() {
    assert_eq!(File::of(1).block(15)[..], (240..=255).collect::<Vec<u8>>()[..]);
    assert_eq!(File::of(1).block(16), File::of(1).block(0));
    assert_eq!(File::of(2).block(7), [0xaa; 16]);
    assert_ne!(File::of(5).block(0), File::of(6).block(0));
    let repeating = File { content: Content::Repeating(3), ..File::of(4) };
    assert_eq!(repeating.block(4), repeating.block(1));
    assert_ne!(repeating.block(2), repeating.block(1));
    // All bytes appear in random data, with about the same frequency.
    let mut count = [0; 256];
    (0..4096).flat_map(|index| File::of(4).block(index)).for_each(|byte| count[usize::from(byte)] += 1);
    assert!(count.iter().all(|count| (160..360).contains(count)), "{count:?}");
}

#[test]
fn the_range_grows() {
    let file = File::of(3);
    let largest = |share: f64| {
        let first = (file.blocks() as f64 * share) as u64;
        (first..first + 1000).flat_map(|index| file.block(index)).max().unwrap()
    };
    assert_eq!([largest(0.0), largest(0.25), largest(0.5)], [0, 64, 128]);
    let last = (file.blocks() - 1000..file.blocks() + 10).flat_map(|index| file.block(index)).max();
    assert_eq!(last, Some(255));
}
