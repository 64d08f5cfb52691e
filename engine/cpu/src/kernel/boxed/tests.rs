use super::*;

/// A value that counts how often such values are dropped.
struct Tally<'a>(&'a AtomicUsize);

impl Drop for Tally<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn the_last_reference_drops_the_value() {
    for last in 0..3 {
        let drops = AtomicUsize::new(0);
        let one = Shared::try_new(|| Some(Tally(&drops))).unwrap();
        let mut references = [Some(one.clone()), Some(one.clone()), Some(one)];
        for at in (0..3).filter(|at| *at != last) {
            references[at] = None;
            assert_eq!(drops.load(Ordering::Relaxed), 0);
        }
        references[last] = None;
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn only_a_single_reference_may_change_the_value() {
    let mut one = Shared::try_new(|| Some(1)).unwrap();
    *one.get_mut().unwrap() = 2;
    let mut other = one.clone();
    assert!(one.get_mut().is_none() && other.get_mut().is_none());
    drop(one);
    *other.get_mut().unwrap() += 1;
    assert_eq!(*other, 3);
}

#[test]
fn threads_share_a_value() {
    let drops = AtomicUsize::new(0);
    let value = Shared::try_new(|| Some((Tally(&drops), 7))).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let value = value.clone();
            scope.spawn(move || {
                for _ in 0..1000 {
                    assert_eq!(value.clone().1, 7);
                }
            });
        }
    });
    assert_eq!(drops.load(Ordering::Relaxed), 0);
    drop(value);
    assert_eq!(drops.load(Ordering::Relaxed), 1);
}

/// The allocator may return a block at any multiple of [`MIN_ALIGN`].
#[test]
fn a_value_fits_into_a_block_at_any_address() {
    #[repr(align(64))]
    struct Lines(#[allow(dead_code, reason = "only the size matters")] [u8; 192]);
    fn check<T>() {
        for address in (0x1000..0x1000 + 64).step_by(MIN_ALIGN) {
            let offset = Aligned::<T>::offset(address);
            assert!((address + offset).is_multiple_of(align_of::<T>()), "{address:#x}");
            assert!(offset + size_of::<T>() <= Aligned::<T>::LAYOUT.size(), "{address:#x}");
        }
    }
    check::<Lines>();
    check::<u128>();
    check::<u8>();
}

#[test]
fn values_are_aligned_and_dropped() {
    #[repr(align(64))]
    struct Line<'a> {
        number: u8,
        _tally: Tally<'a>,
    }
    let drops = AtomicUsize::new(0);
    let mut values: Vec<_> = (0..20)
        .map(|number| Aligned::try_new(|| Some(Line { number, _tally: Tally(&drops) })).unwrap())
        .collect();
    for (i, value) in values.iter_mut().enumerate() {
        assert!((&raw const **value).addr().is_multiple_of(64));
        value.number += 1;
        assert_eq!(usize::from(value.number), i + 1);
    }
    assert_eq!(drops.load(Ordering::Relaxed), 0);
    drop(values);
    assert_eq!(drops.load(Ordering::Relaxed), 20);
}

#[test]
fn a_value_that_cannot_be_made_is_none() {
    assert!(try_new(|| None::<u64>).is_none());
    assert!(Shared::try_new(|| None::<u64>).is_none());
    assert!(Aligned::try_new(|| None::<u64>).is_none());
}
