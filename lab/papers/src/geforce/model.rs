//! The model of the GeForce 6800's texture cache: which lookups miss, and the resulting time.
//!
//! Each quad pipeline has a first-level texture cache, and keeps a group of quads (2 x 2 fragments) in flight. All fragments
//! of a group do their lookup number i before any of them does lookup i + 1. The next group starts after the last lookup of
//! the group. A lookup takes [`Cost::base`] clocks of a pixel pipeline, and [`Cost::miss`] more if its line is absent.

use lockstep_core::Key;

use super::cache::{Cache, Geometry, Order};
use super::files::File;
use super::paper::{CLOCK_HZ, KEY, PIXEL_PIPES, QUAD_PIPES};
use super::trace::{LOOKUPS, Lookup, Step, Texture, encrypt, trace};

/// The distribution of the quads of a texture to the quad pipelines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    /// Successive quads of a row of quads go to the same pipeline.
    Blocked,
    /// Successive quads go to the four pipelines in turn.
    Interleaved,
}

/// A quad pipeline and its cache.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// The first-level texture cache.
    pub cache: Geometry,
    /// The order of the texels of the XOR table.
    pub order: Order,
    /// Bytes of a texel of the tables.
    pub texel: u32,
    /// The number of quads in flight.
    pub quads: u32,
    /// The distribution of quads to the four pipelines.
    pub distribution: Distribution,
}

/// The machine of the model. The number of quads in flight is a round number near the tuned one.
pub const MACHINE: Machine = Machine {
    cache: Geometry { bytes: 4096, line: 64, ways: 4 },
    order: Order::Rows,
    texel: 1,
    quads: 96,
    distribution: Distribution::Blocked,
};

/// The part of a file that is simulated: stretches, each of successive quads of one pipeline, which are evenly
/// distributed over the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The number of stretches.
    pub stretches: u32,
    /// The number of quads of a stretch.
    pub quads: u32,
}

/// Lookups and misses, by [`Step`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Misses {
    /// The number of simulated quads.
    pub quads: u64,
    /// Lookups of each step, in the order of [`Step::ALL`].
    pub lookups: [u64; 4],
    /// Lookups of each step whose line was absent.
    pub misses: [u64; 4],
}

/// The time of a lookup, in clocks of a pixel pipeline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// The time of a lookup whose line is present.
    pub base: f64,
    /// The time that a miss adds to `base`.
    pub miss: f64,
}

impl Misses {
    /// The number of misses divided by the number of lookups.
    pub fn rate(&self) -> f64 {
        self.misses.iter().sum::<u64>() as f64 / self.lookups.iter().sum::<u64>() as f64
    }

    /// Returns the misses per lookup of each step, in the order of [`Step::ALL`].
    pub fn rates(&self) -> [f64; 4] {
        std::array::from_fn(|step| self.misses[step] as f64 / self.lookups[step] as f64)
    }
}

impl Cost {
    /// Returns the seconds of all passes over a file with this number of misses per lookup. The time of the copies is not included.
    pub fn seconds(&self, file: &File, edge: u32, rate: f64) -> f64 {
        lookups(file, edge) * (self.base + self.miss * rate) / (CLOCK_HZ * f64::from(PIXEL_PIPES))
    }
}

/// Returns the number of lookups of all passes over a file.
pub fn lookups(file: &File, edge: u32) -> f64 {
    file.passes(edge) as f64 * f64::from(edge).powi(2) * LOOKUPS as f64
}

/// The lookups of a sample of a file.
pub struct Traces {
    /// The number of fragments of a stretch.
    fragments: usize,
    /// For each stretch, the texels that are read, as `256 * y + x`: first by lookup, in the order of the shader, and
    /// then by fragment.
    stretches: Vec<Vec<u16>>,
    /// The step of each lookup.
    steps: Vec<Step>,
    distribution: Distribution,
}

impl Traces {
    /// Makes the lookups of a sample of a file, with textures of `edge` x `edge` texels.
    pub fn new(file: &File, edge: u32, distribution: Distribution, sample: Sample) -> Traces {
        let key = Key::new(&KEY).expect("16 bytes are a key");
        let round_keys = key.round_keys().as_blocks();
        let steps = trace([0; 16], round_keys).0.into_iter().map(|lookup| lookup.step).collect();
        let fragments = 4 * sample.quads as usize;
        let quads = file.passes(edge) * u64::from(edge).pow(2) / 4;
        let stretches = (0..u64::from(sample.stretches)).map(|number| {
            // The stretches start in the middle of equal parts of the file, and successive stretches belong to different pipelines.
            let first = quads * (2 * number + 1) / (2 * u64::from(sample.stretches));
            let pipes = u64::from(QUAD_PIPES);
            let mut texels = vec![0; LOOKUPS * fragments];
            for quad in 0..u64::from(sample.quads) {
                let in_file = match distribution {
                    Distribution::Blocked => first + quad,
                    Distribution::Interleaved => (first / pipes + quad) * pipes + number % pipes,
                };
                for (corner, block) in blocks_of(in_file, u64::from(edge)).into_iter().enumerate() {
                    let mut at = 4 * quad as usize + corner;
                    encrypt(file.block(block), round_keys, |Lookup { x, y, .. }| {
                        texels[at] = u16::from_be_bytes([y, x]);
                        at += fragments;
                    });
                }
            }
            texels
        });
        Traces { fragments, stretches: stretches.collect(), steps, distribution }
    }

    /// Simulates the first group of each stretch. At the start the cache contains the lines of the first group.
    ///
    /// # Panics
    /// If a stretch has less than a group, or the traces are those of another [`Distribution`].
    pub fn misses(&self, machine: &Machine) -> Misses {
        self.misses_of_groups(machine, 1)
    }

    /// Simulates the first `groups` groups of each stretch, one after the other.
    ///
    /// # Panics
    /// Those of [`Traces::misses`].
    pub fn misses_of_groups(&self, machine: &Machine, groups: u32) -> Misses {
        assert_eq!(self.distribution, machine.distribution);
        let fragments = 4 * machine.quads as usize;
        let lines = Lines::new(machine);
        let mut cache = Cache::new(machine.cache);
        let mut counted = Misses::default();
        let mut run = |stretch: &[u16], group: usize| {
            let mut misses = [0; 4];
            for (texels, &step) in stretch.chunks_exact(self.fragments).zip(&self.steps) {
                let texture = step.texture();
                let texels = &texels[group * fragments..][..fragments];
                let absent = texels.iter().filter(|&&texel| cache.misses(lines.of(texture, texel)));
                misses[step as usize] += absent.count() as u64;
            }
            misses
        };
        run(&self.stretches[0], 0);
        for stretch in &self.stretches {
            for group in 0..groups as usize {
                counted.misses.iter_mut().zip(run(stretch, group)).for_each(|(sum, misses)| *sum += misses);
                counted.quads += u64::from(machine.quads);
            }
        }
        for &step in &self.steps {
            counted.lookups[step as usize] += 4 * counted.quads;
        }
        counted
    }

    /// Returns the lines per lookup that a quad reads in addition to its first line, if no line is kept for other quads or lookups.
    pub fn divergence(&self, machine: &Machine) -> f64 {
        let lines = Lines::new(machine);
        let (mut lookups, mut more) = (0, 0);
        for stretch in &self.stretches {
            for (texels, &step) in stretch.chunks_exact(self.fragments).zip(&self.steps) {
                for quad in texels.as_chunks::<4>().0 {
                    let read = quad.map(|texel| lines.of(step.texture(), texel));
                    more += (1..4).filter(|&at| !read[..at].contains(&read[at])).count();
                    lookups += 4;
                }
            }
        }
        more as f64 / lookups as f64
    }
}

/// The four blocks of a quad. Quads fill a row of quads, then the next one, then the next texture.
fn blocks_of(quad: u64, edge: u64) -> [u64; 4] {
    let a_texture = edge * edge / 4;
    let (texture, within) = (quad / a_texture, quad % a_texture);
    let (row, column) = (within / (edge / 2), within % (edge / 2));
    let first = texture * edge * edge + 2 * row * edge + 2 * column;
    [first, first + 1, first + edge, first + edge + 1]
}

/// The lines of the texels of a machine.
struct Lines {
    order: Order,
    /// Binary logarithm of the number of texels of a line.
    texels: u32,
}

impl Lines {
    fn new(machine: &Machine) -> Lines {
        Lines { order: machine.order, texels: (machine.cache.line / machine.texel).ilog2() }
    }

    /// The line of a texel. In memory the XOR table is followed by the S-box, and the S-box by xtime.
    fn of(&self, texture: Texture, texel: u16) -> u32 {
        let [y, x] = texel.to_be_bytes();
        let position = match texture {
            Texture::Xor => self.order.position(x, y),
            Texture::Sbox => 256 << 8 | u32::from(x),
            Texture::Xtime => 257 << 8 | u32::from(x),
        };
        position >> self.texels
    }
}

#[cfg(test)]
mod tests;
