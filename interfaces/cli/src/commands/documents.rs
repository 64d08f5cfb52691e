//! `lockstep completions` and `lockstep man`

use std::path::PathBuf;

use clap::{Args, ValueHint};
use clap_complete::Shell;

use crate::error::{Error, Result};

/// Print completions for a shell
///
/// For bash: `lockstep completions bash > ~/.local/share/bash-completion/completions/lockstep`
#[derive(Args)]
pub struct Completions {
    /// The shell
    shell: Shell,
}

pub(crate) fn completions(args: &Completions, line: &mut clap::Command) -> Result<()> {
    let mut text = Vec::new();
    let name = line.get_name().to_owned();
    clap_complete::generate(args.shell, line, name, &mut text);
    super::print(&String::from_utf8_lossy(&text))
}

/// Print the manual page
#[derive(Args)]
pub struct Man {
    /// Write the pages of all commands to this folder instead: lockstep.1, lockstep-encrypt.1, ...
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    out_dir: Option<PathBuf>,
}

pub(crate) fn man(args: &Man, line: &clap::Command) -> Result<()> {
    if let Some(folder) = &args.out_dir {
        std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        return clap_mangen::generate_to(line.clone(), folder)
            .map_err(Error::io("write the pages to", folder));
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(line.clone()).render(&mut page).map_err(lockstep::Error::Write)?;
    super::print(&String::from_utf8_lossy(&page))
}
