use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::channel;

use super::*;

/// The number of forks is a state of the whole process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

#[test]
fn each_process_has_its_own_value() {
    let _turn = ONE_AT_A_TIME.lock();
    count_forks();
    let list = PerProcess::default();
    assert_eq!(list.get(), None);
    assert_eq!(list.get_or_make(|| 1), &1);
    assert_eq!(list.get_or_make(|| 2), &1);
    // This has the effect of a fork.
    FORKS.fetch_add(1, Ordering::Relaxed);
    assert_eq!(list.get(), None);
    assert_eq!(list.get_or_make(|| 4), &4);
    FORKS.fetch_sub(1, Ordering::Relaxed);
    assert_eq!(list.get(), Some(&1));
}

#[test]
fn one_thread_makes_the_value_and_the_others_wait() {
    let _turn = ONE_AT_A_TIME.lock();
    let (list, made) = (PerProcess::default(), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let value = list.get_or_make(|| {
                    // The other threads get the opportunity to find no value.
                    std::thread::yield_now();
                    made.fetch_add(1, Ordering::Relaxed)
                });
                assert_eq!(value, &0);
            });
        }
    });
    assert_eq!(made.into_inner(), 1);
}

#[test]
fn a_child_does_not_wait_for_a_value_that_its_parent_was_making() {
    let _turn = ONE_AT_A_TIME.lock();
    let list = PerProcess::default();
    let ((started, has_started), (end, has_ended)) = (channel(), channel());
    std::thread::scope(|scope| {
        let list = &list;
        let parent = scope.spawn(move || {
            *list.get_or_make(|| {
                started.send(()).unwrap();
                has_ended.recv().unwrap();
                1
            })
        });
        has_started.recv().unwrap();
        FORKS.fetch_add(1, Ordering::Relaxed);
        assert_eq!(list.get(), None);
        assert_eq!(list.get_or_make(|| 2), &2);
        FORKS.fetch_sub(1, Ordering::Relaxed);
        assert_eq!(list.get(), None);
        end.send(()).unwrap();
        assert_eq!(parent.join().unwrap(), 1);
    });
    assert_eq!(list.get(), Some(&1));
}
