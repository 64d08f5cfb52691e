//! The first-level texture cache of a quad pipeline.

/// The geometry of a cache. All numbers are powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes of the whole cache.
    pub bytes: u32,
    /// Number of bytes of a line.
    pub line: u32,
    /// Number of lines of a set.
    pub ways: u32,
}

/// The order of the texels of a texture in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Row by row, as rectangle textures are stored.
    Rows,
    /// The bits of x and y alternate (Morton order), as textures whose edges are powers of two are often stored.
    Morton,
}

impl Order {
    /// The position in memory of a texel of a texture of 256 x 256 texels.
    pub fn position(self, x: u8, y: u8) -> u32 {
        match self {
            Order::Rows => u32::from(y) << 8 | u32::from(x),
            Order::Morton => spread(x) | spread(y) << 1,
        }
    }
}

/// Spreads the bits of a byte to the even positions of a word.
fn spread(byte: u8) -> u32 {
    let nibbles = (u32::from(byte) | u32::from(byte) << 4) & 0x0f0f;
    let pairs = (nibbles | nibbles << 2) & 0x3333;
    (pairs | pairs << 1) & 0x5555
}

/// A set-associative cache that replaces the least recently used line of a set.
#[derive(Debug, Clone)]
pub struct Cache {
    ways: usize,
    /// A mask: these bits of a line's number select the set.
    set: u32,
    /// The lines of each set, the most recently used first.
    lines: Vec<u32>,
}

/// A number that no line has. It marks an empty place.
const EMPTY: u32 = u32::MAX;

impl Cache {
    /// An empty cache.
    ///
    /// # Panics
    /// If the number of sets is not a power of two.
    pub fn new(geometry: Geometry) -> Cache {
        let lines = geometry.bytes / geometry.line;
        let sets = lines / geometry.ways;
        assert!(sets.is_power_of_two(), "{geometry:?}");
        Cache { ways: geometry.ways as usize, set: sets - 1, lines: vec![EMPTY; lines as usize] }
    }

    /// Reads a line, given by its address divided by the size of a line. Returns true if the line was absent.
    pub fn misses(&mut self, line: u32) -> bool {
        let first = (line & self.set) as usize * self.ways;
        // The line moves to the front of its set, and the lines that were before it move back by one place. If the
        // line was absent, all lines move back, and the last line is dropped.
        let mut moved = line;
        for place in &mut self.lines[first..first + self.ways] {
            std::mem::swap(place, &mut moved);
            if moved == line {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests;
