//! The labs and their documentation pages.

use std::sync::LazyLock;

use lockstep_papers::cell::Report;
use lockstep_papers::geforce::{Model, Sweep};

mod cell;
mod geforce;
mod page;
mod qpu;

/// One measurement for all tests: it takes seconds.
static REPORT: LazyLock<Report> = LazyLock::new(|| Report::measure().unwrap());

/// The same for the model of the GeForce 6800.
static MODEL: LazyLock<Model> = LazyLock::new(Model::run);
static SWEEP: LazyLock<Sweep> = LazyLock::new(Sweep::run);

/// The same for VideoCore IV.
static QPU_REPORT: LazyLock<lockstep_papers::qpu::Report> =
    LazyLock::new(|| lockstep_papers::qpu::Report::measure().unwrap());
