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
        self.matches(&finding.kind.to_string(), &finding.function)
    }

    /// True if the line describes why a run could not go on. Its kind is `stopped`, and its function is the place with the reason.
    pub fn describes_stop(&self, stop: &str) -> bool {
        stop.strip_prefix("stopped at ").is_some_and(|stop| self.matches("stopped", stop))
    }

    fn matches(&self, kind: &str, name: &str) -> bool {
        kind == self.kind && name.starts_with(&self.start) && name.ends_with(&self.end)
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
