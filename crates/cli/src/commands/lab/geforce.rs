//! `lockstep lab geforce`

use std::path::PathBuf;

use clap::{Args, ValueHint};
use lockstep_lab::geforce::{self, Model, Sweep};

use super::write_page;
use crate::commands::{print, print_json};
use crate::error::Result;

/// AES on a GeForce 6800 and 8800 in an OpenSSL engine (a thesis of 2007): a model of the 6800's texture cache
///
/// Prints the thesis's times, and those of a model of the texture cache on the lookups of the shader: which times fix its
/// parameters, which ones it predicts, and which experiments would refute it. The results do not depend on the machine.
#[derive(Debug, Args)]
pub(crate) struct Geforce {
    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Write the documentation page to this file instead, and its pictures to the folder of the same name without `.md`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "json")]
    page: Option<PathBuf>,
}

pub(super) fn run(args: &Geforce) -> Result<()> {
    match &args.page {
        Some(file) => write_page(file, |folder| Ok(geforce::page(&Model::run(), &Sweep::run(), folder))),
        None if args.json => print_json(&geforce::json(&Model::run())),
        None => print(&geforce::text(&Model::run())),
    }
}
