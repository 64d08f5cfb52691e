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

/// Parses launch options for a named kernel or, without a name, for the default kernel of a backend, by the table of the backend.
/// Options that only some kernels have are not options of a default kernel.
///
/// # Errors
/// [`Error::LaunchOption`] for an option that the kernel does not have, and for a number that is not allowed.
pub fn parse(
    text: &str,
    options: &'static [LaunchOption],
    backend: &str,
    kernel: Option<&str>,
) -> Result<Launch> {
    let has = |option: &LaunchOption| {
        option.kernels.is_empty() || kernel.is_some_and(|kernel| option.kernels.contains(&kernel))
    };
    let one = |part: &str| {
        let refuse = |expected| Error::LaunchOption { option: shown::name(part).into(), expected };
        let (name, number) = part.split_once('=').ok_or_else(|| refuse("write NAME=NUMBER".into()))?;
        let option = match options.iter().find(|option| option.name == name.trim()) {
            Some(option) if has(option) => option,
            Some(option) => {
                return Err(refuse(format!("kernels with this option are {}", option.kernels.join(", "))));
            }
            None => {
                let listed = options.iter().filter(|option| kernel.is_none() || has(option));
                let names: Vec<_> = listed.map(|option| option.name).collect();
                let known = if names.is_empty() { "none".into() } else { names.join(", ") };
                return Err(refuse(format!("options of {}: {known}", kernel.unwrap_or(backend))));
            }
        };
        if let Ok(number) = number.trim().parse()
            && option.range.contains(&number)
            && number % option.multiple == 0
        {
            return Ok((option.name, number));
        }
        let (least, most) = option.range.clone().into_inner();
        let step = match option.multiple {
            1 => String::new(),
            multiple => format!(", a multiple of {multiple}"),
        };
        Err(refuse(format!("give {}, from {least} to {most}{step}", option.meaning)))
    };
    text.split(',').map(one).collect()
}

/// The number of an option, if it is given.
pub fn number(launch: &[(&'static str, u32)], name: &str) -> Option<u32> {
    launch.iter().rev().find(|(other, _)| *other == name).map(|(_, number)| *number)
}

#[cfg(test)]
mod tests;
