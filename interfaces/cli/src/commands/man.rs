//! `lockstep man`

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::error::{Error, Result};

/// Print the manual page
#[derive(Args)]
pub struct Man {
    /// Write the pages of all commands to this folder instead: lockstep.1, lockstep-encrypt.1, ...
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    out_dir: Option<PathBuf>,
}

pub(crate) fn run(args: &Man, line: &clap::Command) -> Result<()> {
    if let Some(folder) = &args.out_dir {
        std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        return clap_mangen::generate_to(line.clone(), folder)
            .map_err(Error::io("write the pages to", folder));
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(line.clone()).render(&mut page).map_err(lockstep::Error::Write)?;
    super::print(&String::from_utf8_lossy(&page))
}
