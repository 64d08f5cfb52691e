//! Launch options: how a device runs its kernels, for measurements and study. Each backend has a table of its options, so that
//! interfaces only pass on a text such as `threads=256,blocks=64`.

use std::ops::RangeInclusive;

use crate::error::{Error, Result};
use crate::shown;

/// A row of the table of a backend.
#[derive(Debug)]
pub struct LaunchOption {
    /// The name, such as `threads`.
    pub name: &'static str,
    /// The meaning of the number, for people.
    pub meaning: &'static str,
    /// The numbers that all kernels with this option accept.
    pub range: RangeInclusive<u32>,
    /// The number must be a multiple of this.
    pub multiple: u32,
    /// The names of the kernels that have the option; empty if all kernels have it.
    pub kernels: &'static [&'static str],
}

/// The names and the numbers of launch options, which [`parse`] has checked.
pub type Launch = Vec<(&'static str, u32)>;

/// Parses launch options for a kernel, by the table of its backend.
///
/// # Errors
/// [`Error::LaunchOption`] for an option that the kernel does not have, and for a number that is not allowed.
pub fn parse(text: &str, options: &'static [LaunchOption], kernel: &str) -> Result<Launch> {
    let has = |option: &&LaunchOption| option.kernels.is_empty() || option.kernels.contains(&kernel);
    let one = |part: &str| {
        let refuse = |expected| Error::LaunchOption { option: shown::name(part).into(), expected };
        let (name, number) = part.split_once('=').ok_or_else(|| refuse("write NAME=NUMBER".into()))?;
        let option = match options.iter().find(|option| option.name == name.trim()) {
            Some(option) if has(&option) => option,
            Some(option) => {
                return Err(refuse(format!("kernels with this option are {}", option.kernels.join(", "))));
            }
            None => {
                let names: Vec<_> = options.iter().filter(has).map(|option| option.name).collect();
                let known = if names.is_empty() { "none".into() } else { names.join(", ") };
                return Err(refuse(format!("options of {kernel}: {known}")));
            }
        };
        let number = number.trim().parse().ok();
        let number = number.filter(|it| option.range.contains(it) && it % option.multiple == 0);
        number.map(|number| (option.name, number)).ok_or_else(|| {
            let (least, most) = option.range.clone().into_inner();
            let step = if option.multiple > 1 {
                format!(", a multiple of {}", option.multiple)
            } else {
                String::new()
            };
            refuse(format!("give {}, from {least} to {most}{step}", option.meaning))
        })
    };
    text.split(',').map(one).collect()
}

/// The number of an option, if it is given.
pub fn number(launch: &[(&'static str, u32)], name: &str) -> Option<u32> {
    launch.iter().rev().find(|(other, _)| *other == name).map(|(_, number)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: &[LaunchOption] = &[
        LaunchOption {
            name: "threads",
            meaning: "threads of a block",
            range: 8..=512,
            multiple: 4,
            kernels: &["a/x", "a/y"],
        },
        LaunchOption { name: "rounds", meaning: "rounds", range: 1..=9, multiple: 1, kernels: &["a/y"] },
    ];

    #[test]
    fn options_are_checked_by_the_table() {
        assert_eq!(parse("threads=256", OPTIONS, "a/x").unwrap(), [("threads", 256)]);
        let both = parse("threads=8, rounds = 9", OPTIONS, "a/y").unwrap();
        assert_eq!((number(&both, "rounds"), number(&both, "other")), (Some(9), None));
        for (text, kernel, expected) in [
            ("threads", "a/x", "`threads`: write NAME=NUMBER"),
            ("threads=7", "a/x", "give threads of a block, from 8 to 512, a multiple of 4"),
            ("threads=10", "a/x", "a multiple of 4"),
            ("threads=-8", "a/x", "from 8 to 512"),
            ("rounds=10", "a/y", "give rounds, from 1 to 9"),
            ("rounds=1", "a/x", "kernels with this option are a/y"),
            ("blocks=1", "a/x", "options of a/x: threads"),
            ("threads=8", "b/z", "kernels with this option are a/x, a/y"),
            ("blocks=8", "b/z", "options of b/z: none"),
            ("", "a/x", "write NAME=NUMBER"),
        ] {
            let error = parse(text, OPTIONS, kernel).unwrap_err().to_string();
            assert!(error.starts_with("launch option `") && error.contains(expected), "{text}: {error}");
        }
    }
}
