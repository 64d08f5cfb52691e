//! `lockstep completions`

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::args::Cli;
use crate::error::Result;

/// Print completions for a shell
///
/// For bash: `lockstep completions bash > ~/.local/share/bash-completion/completions/lockstep`
#[derive(Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Completions) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "lockstep", &mut text);
    super::print(&String::from_utf8_lossy(&text))
}
