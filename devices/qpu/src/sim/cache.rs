//! The caches. They are simulated only for the counters, because the time of a miss is not known.

/// Number of bytes of a line of any cache.
const LINE: u32 = 64;

/// A cache with a number of sets of lines. The least recently used line of a set is replaced.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    /// The tags of each set, with the most recently used line first.
    sets: Vec<Vec<u32>>,
    ways: usize,
}

impl Cache {
    /// An empty cache of a number of bytes.
    pub(super) fn new(bytes: u32, ways: usize) -> Cache {
        let lines = (bytes / LINE) as usize;
        Cache { sets: vec![Vec::with_capacity(ways); lines / ways], ways }
    }

    /// Reads a line. Returns true if the line was in the cache.
    pub(super) fn read(&mut self, address: u32) -> bool {
        let line = address / LINE;
        let count = self.sets.len();
        let set = &mut self.sets[line as usize % count];
        let found = set.iter().position(|tag| *tag == line);
        match found {
            Some(0) => return true,
            Some(place) => set.remove(place),
            None if set.len() == self.ways => set.pop().unwrap_or_default(),
            None => 0,
        };
        set.insert(0, line);
        found.is_some()
    }
}
