//! A cache of recently decrypted pages of which only a part was read. A later read copies other parts of these pages from the
//! cache.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use lockstep::hazmat::share::lock;

/// Maximum number of bytes in the cache. If a page is longer, the cache contains only this page.
const MOST: usize = 64 << 20;

/// The pages with their offsets in the view, the oldest first.
#[derive(Default)]
pub(super) struct Cache(Mutex<VecDeque<(u64, Arc<Vec<u8>>)>>);

impl Cache {
    pub(super) fn get(&self, offset: u64) -> Option<Arc<Vec<u8>>> {
        lock(&self.0).iter().rev().find(|(start, _)| *start == offset).map(|(_, page)| Arc::clone(page))
    }

    pub(super) fn insert(&self, offset: u64, page: Vec<u8>) -> Arc<Vec<u8>> {
        let page = Arc::new(page);
        let mut pages = lock(&self.0);
        pages.push_back((offset, Arc::clone(&page)));
        let mut bytes: usize = pages.iter().map(|(_, page)| page.len()).sum();
        while bytes > MOST && pages.len() > 1 {
            bytes -= pages.pop_front().map_or(0, |(_, page)| page.len());
        }
        page
    }
}
