use super::*;

#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct Sample {
    size: usize,
    one: u32,
    two: u32,
    three: u64,
}

// SAFETY: it is `repr(C)`, its first member is a `usize`, and any bytes are valid.
impl_options!(Sample, "sample": size one two three);

#[test]
fn options_of_other_versions() {
    #[repr(C)]
    struct Newer {
        sample: Sample,
        four: u64,
    }
    let sample = |size| Sample { size, one: 1, two: 2, three: 3 };
    // SAFETY: `options` reads `size` bytes only if it accepts the size, and no accepted size exceeds the structure.
    let read = |sample: *const Sample| unsafe { options(sample) };
    assert_eq!(read(ptr::null()).unwrap(), Sample { size: 0, one: 0, two: 0, three: 0 });
    assert_eq!(read(&sample(size_of::<Sample>())).unwrap().three, 3);
    for wrong in [5000, usize::MAX] {
        assert!(read(&sample(wrong)).is_err());
    }
    // A structure of an older version ends after one of the members. Structures of other sizes are refused.
    for size in 0..size_of::<Sample>() {
        let got = read(&sample(size)).ok().map(|options| (options.one, options.two, options.three));
        let expected = match size {
            8 => Some((0, 0, 0)),
            12 => Some((1, 0, 0)),
            16 => Some((1, 2, 0)),
            _ => None,
        };
        assert_eq!(got, expected, "{size} bytes");
    }
    let mut newer = Newer { sample: sample(size_of::<Newer>()), four: 0 };
    assert_eq!(read(ptr::from_ref(&newer).cast()).unwrap().three, 3);
    newer.four = 1;
    assert!(read(ptr::from_ref(&newer).cast()).is_err());
    (newer.sample.size, newer.four) = (size_of::<Newer>() - 4, 0);
    assert!(read(ptr::from_ref(&newer).cast()).is_err(), "no structure has this size");
}

#[test]
fn written_memory_overlaps_nothing() {
    let at = |start: usize, len: usize, is_written| MemoryRange { start, end: start + len, is_written };
    let cases = [
        (vec![at(0, 8, true), at(8, 8, true), at(16, 8, false)], true),
        (vec![at(0, 8, false), at(4, 8, false)], true),
        (vec![at(4, 8, true), at(0, 5, false)], false),
        (vec![at(0, 8, false), at(7, 1, true)], false),
        (vec![at(0, 8, true), at(4, 0, true), at(5, 0, false)], true),
        // The first range overlaps the last one, but not the second one, which is next to it in the list.
        (vec![at(0, 100, true), at(200, 8, false), at(50, 1, false)], false),
        (vec![at(0, 100, false), at(10, 1, false), at(50, 1, true)], false),
    ];
    for (mut ranges, good) in cases {
        let mut call = Call::default();
        let one_by_one = ranges.iter().try_for_each(|range| call.add(*range));
        assert_eq!(one_by_one.is_ok(), good, "{ranges:?}");
        assert_eq!(check_overlap(&mut ranges).is_ok(), good, "{ranges:?}");
    }
}

#[test]
fn panics_become_codes() {
    assert_eq!(call(|_| panic!("a test")), LOCKSTEP_ERROR_INTERNAL);
}

#[test]
fn impossible_lengths_are_refused() {
    let byte = 0u8;
    assert!(check_memory(&byte, usize::MAX, "it").is_err());
    assert!(check_memory(ptr::without_provenance::<u64>(usize::MAX - 7), 2, "it").is_err());
    assert!(check_memory(ptr::null::<u8>(), 0, "it").is_ok());
    assert!(check_memory(ptr::null::<u8>(), 1, "it").is_err());
}
