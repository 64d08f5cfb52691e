//! Tests of the labs and of their documentation pages.

use std::sync::LazyLock;

use lockstep_papers::cell::Report;
use lockstep_papers::geforce::{Model, Sweep};

mod cell;
mod g80;
mod geforce;
mod language;
mod page;
mod qpu;

/// The measurement of the Cell kernels. All tests share it, because it takes seconds.
static REPORT: LazyLock<Report> = LazyLock::new(|| Report::measure().unwrap());

/// The model of the GeForce 6800 and its sweep, which all tests share.
static MODEL: LazyLock<Model> = LazyLock::new(Model::run);
static SWEEP: LazyLock<Sweep> = LazyLock::new(Sweep::run);

/// The model of the G80 family, which all tests share.
static G80: LazyLock<lockstep_papers::g80::Results> =
    LazyLock::new(|| lockstep_papers::g80::Results::run().unwrap());

/// The measurement of VideoCore IV, which all tests share.
static QPU_REPORT: LazyLock<lockstep_papers::qpu::Report> =
    LazyLock::new(|| lockstep_papers::qpu::Report::measure().unwrap());
