//! `lockstep completions`

use clap::Args;
use clap_complete::Shell;

use crate::error::Result;

/// Print completions for a shell
///
/// For bash: `lockstep completions bash > ~/.local/share/bash-completion/completions/lockstep`
#[derive(Args)]
pub struct Completions {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Completions, line: &mut clap::Command) -> Result<()> {
    let mut text = Vec::new();
    let name = line.get_name().to_owned();
    clap_complete::generate(args.shell, line, name, &mut text);
    super::print(&String::from_utf8_lossy(&text))
}
