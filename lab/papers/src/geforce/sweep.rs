//! Tests whether other machines explain the times of the thesis as well as [`MACHINE`] does.

use super::cache::{Geometry, Order};
use super::files::File;
use super::fit::{Fit, MOST_QUADS, Tuned, Tuning, measured, repeating};
use super::model::{Distribution, MACHINE, Machine, Sample, Traces};
use super::paper::EDGE;

/// Numbers of repeated blocks for which all machines are compared.
pub const REPEATED: [u64; 4] = [2, 64, 512, 1024];

/// A machine and its predictions.
#[derive(Debug, Clone)]
pub struct Variant {
    /// The difference of the machine from [`MACHINE`], as text.
    pub name: String,
    /// The fit, with the tuned number of quads in flight.
    pub tuned: Tuned,
    /// Predicted seconds of file 3.
    pub growing: f64,
    /// Predicted seconds for each number of blocks of [`REPEATED`].
    pub repeated: [f64; 4],
}

/// Misses per lookup by the size of the cache.
#[derive(Debug, Clone)]
pub struct Sizes {
    /// The number of the file.
    pub file: u32,
    /// Number of bytes of a line.
    pub line: u32,
    /// For each size of the cache in bytes: misses per lookup.
    pub points: Vec<(u32, f64)>,
}

/// Machines that differ from [`MACHINE`], and misses by the size of the cache.
pub struct Sweep {
    /// Machines that differ from [`MACHINE`] in one or more properties, with their predictions.
    pub variants: Vec<Variant>,
    /// Misses per lookup by the size of the cache, for several files and lines.
    pub sizes: Vec<Sizes>,
}

/// A stretch that is long enough for a group of every machine.
const SAMPLE: Sample = Sample { stretches: 1, quads: MOST_QUADS };

/// Several parts of file 3, because the contents of this file differ from part to part.
const SAMPLE_OF_FILE_3: Sample = Sample { stretches: 8, quads: MOST_QUADS };

impl Sweep {
    /// Tunes and simulates all machines, which takes some seconds.
    pub fn run() -> Sweep {
        let inputs = [Distribution::Blocked, Distribution::Interleaved].map(Inputs::new);
        let variants = machines().into_iter().map(|(name, machine)| {
            let inputs = &inputs[usize::from(machine.distribution == Distribution::Interleaved)];
            inputs.variant(name, machine)
        });
        let variants: Vec<Variant> = variants.collect();
        let quads = variants[0].tuned.fit.machine.quads;
        Sweep { sizes: sizes(quads), variants }
    }

    /// Returns the smallest and the largest value of a time, over all machines that explain file 1.
    pub fn extent(&self, time: impl Fn(&Variant) -> f64) -> (f64, f64) {
        let explaining = self.variants.iter().filter(|variant| variant.tuned.explains());
        explaining.map(time).fold((f64::MAX, f64::MIN), |(low, high), at| (low.min(at), high.max(at)))
    }
}

/// Traces for all machines of a distribution.
struct Inputs {
    tuning: Tuning,
    growing: Traces,
    repeated: [Traces; 4],
}

impl Inputs {
    fn new(distribution: Distribution) -> Inputs {
        let traces = |file: &File, sample| Traces::new(file, EDGE, distribution, sample);
        Inputs {
            tuning: Tuning::new(distribution),
            growing: traces(&File::of(3), SAMPLE_OF_FILE_3),
            repeated: REPEATED.map(|blocks| traces(&repeating(blocks), SAMPLE)),
        }
    }

    fn variant(&self, name: String, machine: Machine) -> Variant {
        let tuned = self.tuning.tune(machine, measured(1));
        let Fit { machine, .. } = tuned.fit;
        let seconds = |file, traces: &Traces| tuned.fit.seconds(&file, EDGE, traces.misses(&machine).rate());
        Variant {
            name,
            growing: seconds(File::of(3), &self.growing),
            repeated: std::array::from_fn(|at| seconds(repeating(REPEATED[at]), &self.repeated[at])),
            tuned,
        }
    }
}

/// The machines that are compared, each with its differences from [`MACHINE`]. The first one is [`MACHINE`].
fn machines() -> Vec<(String, Machine)> {
    let mut all = vec![("as in the model".into(), MACHINE)];
    let mut add = |name: &str, machine| all.push((name.into(), machine));
    let standard = MACHINE.cache;
    let with = |cache| Machine { cache, ..MACHINE };
    let of = |kilobytes: u32, line, ways| with(Geometry { bytes: kilobytes << 10, line, ways });
    for kilobytes in [1, 2, 8, 16, 32, 64] {
        add(&format!("{kilobytes} KB"), of(kilobytes, standard.line, standard.ways));
    }
    for line in [16, 32, 128, 256] {
        add(&format!("lines of {line} bytes"), of(4, line, standard.ways));
    }
    add("1 KB, lines of 16 bytes", of(1, 16, standard.ways));
    add("2 KB, lines of 32 bytes", of(2, 32, standard.ways));
    add("16 KB, lines of 256 bytes", of(16, 256, standard.ways));
    for ways in [1, 2, 8, 16] {
        add(&format!("{ways} {}", if ways == 1 { "way" } else { "ways" }), of(4, standard.line, ways));
    }
    add("1 KB, 16 ways", of(1, standard.line, 16));
    add("8 KB, 2 ways", of(8, standard.line, 2));
    for texel in [4, 16] {
        add(&format!("texels of {texel} bytes"), Machine { texel, ..MACHINE });
    }
    add("Morton order", Machine { order: Order::Morton, ..MACHINE });
    let large = of(16, standard.line, standard.ways);
    add("Morton order, 16 KB", Machine { order: Order::Morton, ..large });
    add("quads interleaved", Machine { distribution: Distribution::Interleaved, ..MACHINE });
    all
}

/// Misses by the size of the cache, with this number of quads in flight.
fn sizes(quads: u32) -> Vec<Sizes> {
    let of = |(file, line)| {
        let traces = Traces::new(&File::of(file), EDGE, Distribution::Blocked, Sample { quads, ..SAMPLE });
        let point = |power: u32| {
            let cache = Geometry { bytes: 1 << power, line, ..MACHINE.cache };
            (cache.bytes, traces.misses(&Machine { quads, cache, ..MACHINE }).rate())
        };
        Sizes { file, line, points: (9..=16).map(point).collect() }
    };
    [(4, 64), (1, 32), (1, 64), (1, 128), (2, 64)].map(of).into()
}
