//! The caches, which are simulated for the counters only: no figure is known for the time of a miss.

/// Bytes of a line.
const LINE: u32 = 64;

/// A cache with a number of sets of lines, of which the least recently used is replaced.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    /// The tags of each set, the most recently used first.
    sets: Vec<Vec<u32>>,
    ways: usize,
}

impl Cache {
    /// An empty cache of a number of bytes.
    pub(super) fn new(bytes: u32, ways: usize) -> Cache {
        let lines = (bytes / LINE) as usize;
        Cache { sets: vec![Vec::with_capacity(ways); lines / ways], ways }
    }

    /// Reads a line. True if it was there.
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
