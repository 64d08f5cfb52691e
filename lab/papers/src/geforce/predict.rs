//! The results of the model: times of the files, which are fitted, tuned or predicted, and times of experiments that
//! the thesis did not make.

use super::cache::Geometry;
use super::files::File;
use super::fit::{Fit, Tuned, Tuning, around_the_shader, measured, measured_range, repeating};
use super::model::{Distribution, MACHINE, Machine, Misses, Sample, Traces};
use super::paper::{A6_6800, EDGE, LARGE_EDGE, runs};

/// Number of groups of a file that are simulated.
const GROUPS: u32 = 8;

/// Number of groups of file 3 that are simulated. It is larger than [`GROUPS`], because the contents of the file differ from part to part.
const GROUPS_OF_FILE_3: u32 = 32;

/// Number of groups that are simulated of a file that repeats blocks.
const GROUPS_OF_REPEATED: u32 = 4;

/// Numbers of groups for the table of convergence.
const CONVERGENCE: [u32; 4] = [1, 4, 8, 32];

/// Numbers of different blocks that are repeated.
pub const REPEATED: [u64; 13] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];

/// The relation of a figure to the thesis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The figure determines a parameter: it agrees by construction.
    Fitted,
    /// A parameter was varied until the figure agreed.
    Tuned,
    /// No parameter depends on the figure.
    Predicted,
}

impl Basis {
    /// The name of the relation in tables.
    pub fn name(self) -> &'static str {
        match self {
            Basis::Fitted => "fitted",
            Basis::Tuned => "tuned",
            Basis::Predicted => "predicted",
        }
    }
}

/// A time of the model and of the thesis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// The number of the file.
    pub file: u32,
    /// The edge of the data texture, in texels.
    pub edge: u32,
    /// True for times of the whole program, false for times of the shader.
    pub whole: bool,
    /// The relation of the time of the model to the time of the thesis.
    pub basis: Basis,
    /// Seconds by the model.
    pub model: f64,
    /// Seconds in the thesis.
    pub thesis: f64,
    /// Seconds of the shortest and the longest run of the thesis.
    pub range: (f64, f64),
}

impl Row {
    /// Returns the difference between model and thesis, in percent of the thesis.
    pub fn percent(&self) -> f64 {
        100.0 * (self.model / self.thesis - 1.0)
    }
}

/// A mechanism other than the cache of the model, with costs that are fitted on files 2 and 4.
#[derive(Debug, Clone)]
pub struct Other {
    /// A short description of the mechanism.
    pub name: String,
    /// The fit, and the time of file 1.
    pub tuned: Tuned,
}

/// The results of the model.
pub struct Model {
    /// The machine of the model, with its fitted costs.
    pub fit: Fit,
    /// The numbers of quads in flight with which the model gives the times of the longest and of the shortest run of
    /// file 1.
    pub quads: (u32, u32),
    /// The simulated lookups and misses of files 1 to 7.
    pub misses: Vec<Misses>,
    /// The times of the thesis, each with the time of the model.
    pub rows: Vec<Row>,
    /// A fit that also has a time of start-up, which is fitted on file 7.
    pub with_start: Fit,
    /// The rows of the table with the fit [`Model::with_start`].
    pub rows_with_start: Vec<Row>,
    /// For each number of simulated quads: seconds of files 1, 3 and 4.
    pub convergence: Vec<(u64, [f64; 3])>,
    /// The fit with another distribution of the quads to the pipelines.
    pub interleaved: Fit,
    /// Seconds for each number of [`REPEATED`], with [`Model::fit`] and with [`Model::interleaved`].
    pub repeated: Vec<[f64; 2]>,
    /// Mechanisms that do not explain file 1.
    pub others: Vec<Other>,
}

impl Model {
    /// Tunes and simulates the model, which takes about a second.
    pub fn run() -> Model {
        let tuning = Tuning::new(Distribution::Blocked);
        let machine = tuning.tune(MACHINE, measured(1)).fit.machine;
        let (shortest, longest) = measured_range(1);
        let quads = |seconds| tuning.tune(MACHINE, seconds).fit.machine.quads;
        let misses: Vec<Misses> = (1..=7)
            .map(|file| {
                let groups = if file == 3 { GROUPS_OF_FILE_3 } else { GROUPS };
                simulate(&machine, &File::of(file), groups)
            })
            .collect();
        let fit_from = |start| Fit::new(machine, start, [misses[1].rate(), misses[3].rate()]);
        let fit = fit_from(0.0);
        // The time of file 7 is a linear function of the start-up time.
        let seventh = |fit: Fit| fit.seconds(&File::of(7), EDGE, misses[6].rate());
        let slope = seventh(fit_from(1.0)) - seventh(fit);
        let with_start = fit_from((measured(7) - seventh(fit)) / slope);
        let other_distribution = Machine { distribution: Distribution::Interleaved, ..MACHINE };
        let interleaved = Tuning::new(Distribution::Interleaved).tune(other_distribution, measured(1)).fit;
        Model {
            quads: (quads(longest), quads(shortest)),
            rows: rows(&fit, &misses),
            rows_with_start: rows(&with_start, &misses),
            convergence: convergence(&fit),
            repeated: REPEATED
                .map(|blocks| {
                    [&fit, &interleaved].map(|fit| seconds_of(fit, &repeating(blocks), GROUPS_OF_REPEATED))
                })
                .into(),
            others: others(&tuning),
            fit,
            misses,
            with_start,
            interleaved,
        }
    }
}

/// Simulates the lookups of a number of groups of a file.
fn simulate(machine: &Machine, file: &File, groups: u32) -> Misses {
    let sample = Sample { stretches: groups, quads: machine.quads };
    Traces::new(file, EDGE, machine.distribution, sample).misses(machine)
}

/// Returns the seconds of the shader for a file. This number of groups of the file is simulated.
fn seconds_of(fit: &Fit, file: &File, groups: u32) -> f64 {
    fit.seconds(file, EDGE, simulate(&fit.machine, file, groups).rate())
}

/// The times of the thesis, each with the time of the model. The misses are simulated with textures of 512 x 512 texels. The same misses
/// are used for larger textures.
fn rows(fit: &Fit, misses: &[Misses]) -> Vec<Row> {
    let seconds = |file: u32, edge| fit.seconds(&File::of(file), edge, misses[file as usize - 1].rate());
    let basis = |file| match file {
        2 | 4 => Basis::Fitted,
        1 => Basis::Tuned,
        // In the fit with a start-up time, this time is fitted on file 7.
        7 if fit.start > 0.0 => Basis::Fitted,
        _ => Basis::Predicted,
    };
    let shader = [2, 4, 1, 3, 5, 6, 7].map(|file| Row {
        file,
        edge: EDGE,
        whole: false,
        basis: basis(file),
        model: seconds(file, EDGE),
        thesis: measured(file),
        range: measured_range(file),
    });
    let whole = [1, 3].map(|file| Row {
        file,
        edge: LARGE_EDGE,
        whole: true,
        basis: Basis::Predicted,
        model: around_the_shader(LARGE_EDGE) + seconds(file, LARGE_EDGE),
        thesis: runs(&A6_6800, file).mean(),
        range: runs(&A6_6800, file).range(),
    });
    shader.into_iter().chain(whole).collect()
}

fn convergence(fit: &Fit) -> Vec<(u64, [f64; 3])> {
    let row = |groups: u32| {
        let seconds = [1, 3, 4].map(|file| seconds_of(fit, &File::of(file), groups));
        (u64::from(groups * fit.machine.quads), seconds)
    };
    CONVERGENCE.map(row).into()
}

/// Sizes of caches in bytes. The model tests whether a cache of one of these sizes explains file 1 if quads run one after the other.
const SIZES_FOR_ONE_QUAD: [u32; 3] = [4096, 16_384, 32_768];

fn others(tuning: &Tuning) -> Vec<Other> {
    let divergence = Other {
        name: "each quad alone reads its lines, nothing is kept".into(),
        tuned: tuning.fit_divergence(MACHINE),
    };
    let one_quad = SIZES_FOR_ONE_QUAD.map(|bytes| {
        let cache = Geometry { bytes, ..MACHINE.cache };
        Other {
            name: format!("one quad after the other, cache of {} KB", bytes >> 10),
            tuned: tuning.fit_single_quads(Machine { cache, ..MACHINE }),
        }
    });
    std::iter::once(divergence).chain(one_quad).collect()
}
