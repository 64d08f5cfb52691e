//! Work on all processors.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Applies a function to each item, on as many threads as there are processors.
pub fn for_each<'a, T: Sync>(items: &'a [T], function: impl Fn(&'a T) + Sync) {
    let next = AtomicUsize::new(0);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    function(item);
                }
            });
        }
    });
}
