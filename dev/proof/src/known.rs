//! Findings that are known. The list fails if it lacks a finding, and if it has one that the analysis no longer makes.

use crate::machine::Finding;

/// A line of the list: the kind of a finding, and the beginning and the end of the name of its function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Known {
    /// The text of the line.
    pub line: String,
    kind: String,
    start: String,
    end: String,
}

impl Known {
    /// True if the line describes the finding.
    pub fn describes(&self, finding: &Finding) -> bool {
        let (kind, function) = (finding.kind.to_string(), finding.function.as_str());
        kind == self.kind && function.starts_with(&self.start) && function.ends_with(&self.end)
    }
}

/// Reads the list. A line is `kind: function`, where `*` stands for any text of a name, once. Lines that start with `#` are reasons.
///
/// # Errors
/// A message for a line of another form.
pub fn parse(text: &str) -> Result<Vec<Known>, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (kind, function) =
                line.split_once(": ").ok_or_else(|| format!("not `kind: function`: {line}"))?;
            let (start, end) = function.split_once('*').unwrap_or((function, ""));
            Ok(Known { line: line.into(), kind: kind.into(), start: start.into(), end: end.into() })
        })
        .collect()
}

#[cfg(test)]
mod tests;
