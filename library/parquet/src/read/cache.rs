//! Recently decrypted pages that were read in part. Later reads take the other parts from this cache.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of bytes, except that a single page may be longer.
const MOST: usize = 64 << 20;

#[derive(Default)]
pub(super) struct Cache {
    pages: Mutex<Pages>,
}

#[derive(Default)]
struct Pages {
    /// The pages with their offsets in the view, the oldest first.
    pages: VecDeque<(u64, Arc<Vec<u8>>)>,
    bytes: usize,
}

impl Cache {
    pub(super) fn get(&self, offset: u64) -> Option<Arc<Vec<u8>>> {
        let pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.pages.iter().rev().find(|(start, _)| *start == offset).map(|(_, page)| Arc::clone(page))
    }

    pub(super) fn insert(&self, offset: u64, page: Vec<u8>) -> Arc<Vec<u8>> {
        let page = Arc::new(page);
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.bytes += page.len();
        pages.pages.push_back((offset, Arc::clone(&page)));
        while pages.bytes > MOST && pages.pages.len() > 1 {
            let oldest = pages.pages.pop_front();
            pages.bytes -= oldest.map_or(0, |(_, page)| page.len());
        }
        page
    }
}
