//! The parameters of the model. They are fitted and tuned on files 1, 2 and 4 of the thesis. No other time of the thesis is used.

use super::files::{Content, File};
use super::model::{Cost, Distribution, Machine, Sample, Traces};
use super::paper::{A5_6800, A7_COPIES_6800, A7_NULL, CLOCK_HZ, EDGE, PIXEL_PIPES, Runs, runs};

/// The greatest number of quads in flight that is tried: 1024 fragments of a quad pipeline.
pub const MOST_QUADS: u32 = 256;

const TUNING: Sample = Sample { stretches: 1, quads: MOST_QUADS };

/// Returns the number of the file in [`A7_COPIES_6800`] and [`A7_NULL`] that has the same length as this file.
fn same_length(file: u32) -> u32 {
    match file {
        1..=4 => 1,
        5 | 6 => 5,
        other => other,
    }
}

/// The time that represents the three runs of a file. For files 1 to 4 it is the mean, which the thesis prints. For the other files it is
/// the median, because one run of Table A7 took four times as long as the other two.
fn typical(file: u32, runs: &Runs) -> f64 {
    if file <= 4 { runs.mean() } else { runs.median() }
}

/// Returns the seconds of the shader for a file in the thesis: the time of Table A5 minus the time of the copies of Table A7.
pub fn measured(file: u32) -> f64 {
    typical(file, &runs(&A5_6800, file)) - copies(file)
}

/// Returns the seconds of the shader for a file in the thesis, by the shortest and by the longest run of Table A5.
pub fn measured_range(file: u32) -> (f64, f64) {
    let (low, high) = runs(&A5_6800, file).range();
    (low - copies(file), high - copies(file))
}

/// Returns the seconds of the shader for a file in the thesis, from the means of the runs. Unlike [`measured`], this also uses the means
/// for files 5 to 7.
pub fn measured_by_means(file: u32) -> f64 {
    runs(&A5_6800, file).mean() - runs(&A7_COPIES_6800, same_length(file)).mean()
}

fn copies(file: u32) -> f64 {
    typical(file, &runs(&A7_COPIES_6800, same_length(file)))
}

/// Seconds of everything except the shader for files 1 to 4, with textures of this edge: the time of the program without a
/// cipher, and the time of the copies. The copies take as long per byte as in Table A7.
pub fn around_the_shader(edge: u32) -> f64 {
    let texels = |edge: u32| File::of(1).passes(edge) as f64 * f64::from(edge).powi(2);
    let null = runs(&A7_NULL, 1).mean();
    null + (runs(&A7_COPIES_6800, 1).mean() - null) * texels(edge) / texels(EDGE)
}

/// A machine with its costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// The machine whose costs were fitted.
    pub machine: Machine,
    /// Clocks of a lookup, fitted on files 2 and 4.
    pub cost: Cost,
    /// Seconds of the program before the first pass.
    pub start: f64,
}

impl Fit {
    /// Fits the costs on files 2 and 4. The third argument has the misses per lookup of both files.
    pub fn new(machine: Machine, start: f64, [constant, random]: [f64; 2]) -> Fit {
        let unit = Cost { base: 1.0, miss: 0.0 }.seconds(&File::of(2), EDGE, 0.0);
        let (fast, slow) = (measured(2) - start, measured(4) - start);
        let miss = (slow - fast) / unit / (random - constant);
        Fit { machine, cost: Cost { base: fast / unit - miss * constant, miss }, start }
    }

    /// Returns the seconds of the shader for a file with this number of misses per lookup.
    pub fn seconds(&self, file: &File, edge: u32, rate: f64) -> f64 {
        self.start + self.cost.seconds(file, edge, rate)
    }

    /// Returns the throughput of loading lines after misses, in bytes per second. Each pixel pipeline loads a line in [`Cost::miss`]
    /// clocks.
    pub fn line_throughput(&self) -> f64 {
        f64::from(self.machine.cache.line) * f64::from(PIXEL_PIPES) * CLOCK_HZ / self.cost.miss
    }
}

/// The traces of files 1, 2 and 4, on which machines are tuned.
pub struct Tuning {
    files: [Traces; 3],
}

/// A fit, and the time of file 1 that follows from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tuned {
    /// The machine, with its fitted costs.
    pub fit: Fit,
    /// Seconds of the shader for file 1.
    pub seconds: f64,
}

impl Tuned {
    /// True if the time of file 1 is within the spread of the thesis's runs, and no cost is negative.
    pub fn explains(&self) -> bool {
        let (shortest, longest) = measured_range(1);
        (shortest..=longest).contains(&self.seconds) && self.fit.cost.base >= 0.0
    }
}

impl Tuning {
    /// Makes the traces for machines with this distribution.
    pub fn new(distribution: Distribution) -> Tuning {
        Tuning { files: [1, 2, 4].map(|file| Traces::new(&File::of(file), EDGE, distribution, TUNING)) }
    }

    /// Returns the fit for this machine.
    pub fn fit(&self, machine: Machine) -> Tuned {
        self.fit_rates(machine, |traces| traces.misses(&machine).rate())
    }

    /// Returns the fit for a machine that processes one quad after the other.
    pub fn fit_single_quads(&self, machine: Machine) -> Tuned {
        let machine = Machine { quads: 1, ..machine };
        self.fit_rates(machine, |traces| traces.misses_of_groups(&machine, MOST_QUADS).rate())
    }

    /// Returns the fit if each quad loads its lines separately. Then neither other quads nor later lookups use these lines again.
    pub fn fit_divergence(&self, machine: Machine) -> Tuned {
        self.fit_rates(machine, |traces| traces.divergence(&machine))
    }

    fn fit_rates(&self, machine: Machine, rate: impl Fn(&Traces) -> f64) -> Tuned {
        let [counting, constant, random] = self.files.each_ref().map(rate);
        let fit = Fit::new(machine, 0.0, [constant, random]);
        Tuned { fit, seconds: fit.seconds(&File::of(1), EDGE, counting) }
    }

    /// Tunes the number of quads in flight such that the time of file 1 is as close as possible to `target` seconds. The maximum is
    /// [`MOST_QUADS`].
    pub fn tune(&self, machine: Machine, target: f64) -> Tuned {
        let with = |quads| self.fit(Machine { quads, ..machine });
        let quads = |tuned: &Tuned| f64::from(tuned.fit.machine.quads);
        let (mut slow, mut fast) = (with(1), with(2));
        while fast.seconds > target {
            if fast.fit.machine.quads == MOST_QUADS {
                return fast;
            }
            slow = fast;
            fast = with(2 * fast.fit.machine.quads);
        }
        while quads(&fast) - quads(&slow) > 1.0 {
            // The time is nearly a linear function of 1 / (number of quads), because the fragments of a group share lines.
            let share = (target - fast.seconds) / (slow.seconds - fast.seconds);
            let guess = 1.0 / (share / quads(&slow) + (1.0 - share) / quads(&fast));
            let next = with(guess.clamp(quads(&slow) + 1.0, quads(&fast) - 1.0) as u32);
            if next.seconds > target { slow = next } else { fast = next }
        }
        if slow.seconds - target < target - fast.seconds { slow } else { fast }
    }
}

/// Returns a file of the length of file 4 that repeats this number of different blocks.
pub fn repeating(different: u64) -> File {
    File { content: Content::Repeating(different), ..File::of(4) }
}
