use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::channel;

use super::*;

/// A child of this process.
fn child() -> Process {
    let (id, forks) = current();
    (id, forks + 1)
}

/// The value of a process, as [`PerProcess::get_or_make`] makes it there. Other tests run in this process, so a test cannot
/// change its number of forks.
fn make_in<T>(list: &PerProcess<T>, process: Process, value: T) -> &T {
    list.find(process).unwrap_or_else(|| list.add(process)).value.get_or_init(|| value)
}

#[test]
fn each_process_has_its_own_value() {
    let list = PerProcess::default();
    assert_eq!(list.get(), None);
    assert_eq!(list.get_or_make(|| 1), &1);
    assert_eq!(list.get_or_make(|| 2), &1);
    assert!(list.find(child()).is_none());
    assert_eq!(make_in(&list, child(), 4), &4);
    assert_eq!(list.get(), Some(&1));
}

#[test]
fn one_thread_makes_the_value_and_the_others_wait() {
    let (list, made) = (PerProcess::default(), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let value = list.get_or_make(|| {
                    // Gives the other threads the opportunity to find no value.
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
        assert!(list.find(child()).is_none());
        assert_eq!(make_in(list, child(), 2), &2);
        assert_eq!(list.get(), None);
        end.send(()).unwrap();
        assert_eq!(parent.join().unwrap(), 1);
    });
    assert_eq!(list.get(), Some(&1));
}
