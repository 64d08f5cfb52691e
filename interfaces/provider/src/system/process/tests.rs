
use super::*;

#[test]
fn each_process_has_its_own_value() {
    count_forks();
    let list = PerProcess::default();
    assert_eq!(list.get(), None);
    assert_eq!(list.get_or_make(|| Ok::<_, ()>(1)), Ok(&1));
    assert_eq!(list.get_or_make(|| Ok::<_, ()>(2)), Ok(&1));
    // This has the effect of a fork.
    FORKS.fetch_add(1, Ordering::Relaxed);
    assert_eq!(list.get(), None);
    assert_eq!(list.get_or_make(|| Err(3)), Err(3));
    assert_eq!(list.get_or_make(|| Ok::<_, ()>(4)), Ok(&4));
    FORKS.fetch_sub(1, Ordering::Relaxed);
    assert_eq!(list.get(), Some(&1));
}

#[test]
fn threads_share_one_value() {
    let list = PerProcess::default();
    std::thread::scope(|scope| {
        let got: Vec<_> = (0..8)
            .map(|i| {
                let list = &list;
                scope.spawn(move || *list.get_or_make(|| Ok::<_, ()>(i)).unwrap())
            })
            .collect();
        let got: Vec<i32> = got.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(got.iter().all(|value| *value == got[0]));
    });
}
