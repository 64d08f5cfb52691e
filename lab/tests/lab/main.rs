//! The lab for the Cell and its documentation page.

use std::sync::LazyLock;

use lockstep_lab::cell::Report;

mod cell;
mod page;

/// One measurement for all tests: it takes seconds.
static REPORT: LazyLock<Report> = LazyLock::new(|| Report::measure().unwrap());
