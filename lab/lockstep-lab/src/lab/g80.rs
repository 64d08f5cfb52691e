//! The subcommand `lockstep-lab lab g80`.

use clap::Args;
use lockstep_cli::program::{Result, print, print_json};
use lockstep_papers::g80::{self, Results};

use super::{ReportForm, failure, write_page};

/// AES on simulated GeForce 8 cards (8800 GT, 8400 GS, 8800 GTS): the times of two papers beside those of a model
///
/// The lookups of Lockstep's kernels of the papers' designs, from the emulator, run on an event-driven multiprocessor. Prints Table 1 and
/// Figures 5 to 7 of the CUDA paper (Di Biagio and others, 2009) and Tables A1 to A4 of the thesis of 2007, each figure beside the
/// model's: fitted, tuned, predicted or refuted. The results do not depend on the machine. `lockstep-lab lab cuda` measures the kernels on
/// a current GPU.
#[derive(Args)]
pub(super) struct G80 {
    #[command(flatten)]
    form: ReportForm,
}

pub(super) fn run(args: &G80) -> Result<()> {
    let results = || Results::run().map_err(failure);
    match &args.form.page {
        Some(file) => write_page(file, |folder| Ok(g80::page(&results()?, folder))),
        None if args.form.json => print_json(&g80::json(&results()?)),
        None => print(&g80::text(&results()?)),
    }
}
