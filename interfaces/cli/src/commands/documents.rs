//! The commands `lockstep completions` and `lockstep man`, which print shell completions and manual pages.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueHint};
use clap_complete::Shell;
use clap_mangen::Man as Page;
use clap_mangen::roff::{Roff, bold, roman};
use lockstep::engine::{BackendOptions, backends, discover};

use crate::error::{Error, Result};

/// The exit codes and their meaning, for the help and the manual pages.
pub(super) const EXIT_CODES: [(&str, &str); 4] = [
    ("0", "success (also if the reader of the output stops early)"),
    ("1", "the data or the key are not authentic, or a self-test failed"),
    ("2", "a mistake on the command line, or input, output or memory failed"),
    ("130 or 143", "stopped by a signal"),
];

const FILES: [(&str, &str); 2] = [
    (
        "$XDG_CONFIG_HOME/lockstep/identities, or ~/.config/lockstep/identities",
        "The identities that `decrypt` uses if no option names others.",
    ),
    (
        "$XDG_CACHE_HOME/lockstep, or ~/.cache/lockstep",
        "Measurements of devices and kernels, and compiled kernels. The folder may be deleted.",
    ),
];

const SEE_ALSO: [(&str, &str); 4] = [
    ("lockstep(1)", "all commands; each has a page of its own, such as lockstep-encrypt(1)"),
    ("lockstep-provider(7)", "the provider for OpenSSL"),
    ("age(1)", "reads the files that `encrypt --age` writes"),
    ("openssl-enc(1)", "reads and writes some of the raw modes of `cipher`"),
];

/// Print completions for a shell
///
/// For bash: `lockstep completions bash > ~/.local/share/bash-completion/completions/lockstep`
///
/// Names of devices and kernels are those of this machine: print the completions again after a change of its devices.
#[derive(Args)]
#[command(
    after_long_help = "Examples:\n  lockstep completions bash > lockstep.bash\n  lockstep completions zsh > _lockstep\n  lockstep completions fish > lockstep.fish"
)]
pub struct Completions {
    /// The shell
    shell: Shell,
}

pub(crate) fn completions(args: &Completions, line: &mut clap::Command) -> Result<()> {
    let options = BackendOptions { threads: 1 };
    let found = discover(&options).devices;
    // The completions also offer the first device of each backend, even if this machine does not have it: packages contain
    // completions for other machines.
    let usual = backends(&options).into_iter().map(|backend| backend.name()).filter(|name| *name != "cpu");
    let usual = usual.map(|name| format!("{name}:0"));
    let devices = found.iter().map(|device| device.id().to_string()).chain(usual);
    // clap requires names that stay valid for the whole process.
    let devices: Vec<&'static str> = devices.map(|name| &*name.leak()).collect();
    let kernels = found.iter().flat_map(|device| device.kernels()).map(|kernel| kernel.name).collect();
    for (option, names) in [("device", devices), ("kernel", kernels)] {
        let names: BTreeSet<_> = names.into_iter().chain(["auto"]).collect();
        for command in line.get_subcommands_mut() {
            if command.get_arguments().any(|argument| argument.get_id() == option) {
                let parser = PossibleValuesParser::new(&names);
                *command = command.clone().mut_arg(option, |argument| argument.value_parser(parser));
            }
        }
    }
    let mut text = Vec::new();
    let name = line.get_name().to_owned();
    clap_complete::generate(args.shell, line, &name, &mut text);
    let mut text = String::from_utf8_lossy(&text).into_owned();
    if args.shell == Shell::Bash {
        // The script of clap spells `lockstep-lab` in two ways: one in the name of the function, another in the cases.
        let (of_cases, name) = (name.replace('-', "__subcmd__"), name.replace('-', "__"));
        text = text.replace(&of_cases, &name);
        let [of_clap, of_words] = [format!("-F _{name} "), format!("-F _{name}_words ")];
        text = BASH.replace("NAME", &name) + &text.replace(&of_clap, &of_words);
    }
    super::print(&text)
}

/// A function of bash that calls the completion function of clap. It joins the words that bash has split at colons and equals signs.
const BASH: &str = include_str!("completions.bash");

/// Print the manual page
#[derive(Args)]
#[command(after_long_help = "Examples:\n  lockstep man > lockstep.1\n  lockstep man --out-dir man1")]
pub struct Man {
    /// Write the pages of all commands to this folder instead: lockstep.1, lockstep-encrypt.1, ...
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    out_dir: Option<PathBuf>,
}

pub(crate) fn man(args: &Man, line: &clap::Command) -> Result<()> {
    let mut line = line.clone().disable_help_subcommand(true);
    line.build();
    let Some(folder) = &args.out_dir else {
        let page = page(&line).map_err(lockstep::Error::Write)?.1;
        return super::print(&String::from_utf8_lossy(&page));
    };
    std::fs::create_dir_all(folder).map_err(Error::io("create the folder", folder))?;
    write_pages(&line, folder)
}

/// Writes the pages of a command and of its subcommands.
fn write_pages(command: &clap::Command, folder: &Path) -> Result<()> {
    let (name, page) = page(command).map_err(lockstep::Error::Write)?;
    let path = folder.join(name);
    std::fs::write(&path, page).map_err(Error::io("write", &path))?;
    command.get_subcommands().try_for_each(|command| write_pages(command, folder))
}

/// Returns the file name and the text of a manual page. The page starts with the text that clap_mangen makes of the help, and has more
/// sections after it.
fn page(command: &clap::Command) -> io::Result<(String, Vec<u8>)> {
    let examples = command.get_after_long_help().map(ToString::to_string);
    let page = Page::new(command.clone().after_help(None::<&str>).after_long_help(None::<&str>));
    let mut text = Vec::new();
    page.render(&mut text)?;
    let mut roff = Roff::new();
    if let Some(examples) = examples {
        roff.control("SH", ["EXAMPLES"]).control("nf", []);
        roff.text([roman(examples.trim_start_matches("Examples:\n"))]).control("fi", []);
    }
    // Only the help of the program has a text at its end. Its exit codes are left out, because the page has a section for them.
    if command.get_after_help().is_some() {
        roff.control("SH", ["NOTES"]);
        for paragraph in super::AFTER.split("\n\n") {
            roff.control("PP", []).text([roman(paragraph)]);
        }
    }
    for (title, rows) in [("EXIT STATUS", &EXIT_CODES[..]), ("FILES", &FILES), ("SEE ALSO", &SEE_ALSO)] {
        roff.control("SH", [title]);
        for (term, meaning) in rows {
            roff.control("TP", []).text([bold(*term)]).text([roman(*meaning)]);
        }
    }
    roff.to_writer(&mut text)?;
    Ok((page.get_filename(), text))
}
