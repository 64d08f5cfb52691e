//! Findings that are known. The analysis fails if the list lacks a finding, or has a finding that the analysis no
//! longer makes.

use crate::machine::Finding;

/// A line of the list: the kind of a finding, the maximum number of bytes, and the start and the end of the name of the function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Known {
    /// The text of the line.
    pub line: String,
    kind: String,
    most: usize,
    start: String,
    end: String,
    /// True if `start` is the whole name.
    is_exact: bool,
}

impl Known {
    /// True if the line describes the finding.
    pub fn describes(&self, finding: &Finding) -> bool {
        finding.bytes <= self.most && self.matches(&finding.kind.to_string(), &finding.function)
    }

    /// True if the line describes a reason why runs stopped. The kind of such a line is `stopped`, and its function is the place and the
    /// reason.
    pub fn describes_stop(&self, stop: &str) -> bool {
        stop.strip_prefix("stopped at ").is_some_and(|stop| self.matches("stopped", stop))
    }

    fn matches(&self, kind: &str, name: &str) -> bool {
        let rest = name.strip_prefix(self.start.as_str());
        kind == self.kind
            && rest
                .is_some_and(|rest| if self.is_exact { rest.is_empty() } else { rest.ends_with(&self.end) })
    }
}

/// Reads the list. A line is `kind: function`, or `kind, at most N bytes: function` for secrets that are left behind. `*` stands for
/// any text of a name, once. Lines that start with `#` are reasons.
///
/// # Errors
/// A message for a line of another form.
pub fn parse(text: &str) -> Result<Vec<Known>, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (kind, function) =
                line.split_once(": ").ok_or_else(|| format!("not `kind: function`: {line}"))?;
            let (kind, most) = match kind.split_once(", at most ") {
                Some((kind, most)) => {
                    let most = most.strip_suffix(" bytes").and_then(|most| most.parse().ok());
                    (kind, most.ok_or_else(|| format!("not `at most N bytes`: {line}"))?)
                }
                None => (kind, 0),
            };
            let (start, end) = function.split_once('*').unwrap_or((function, ""));
            let is_exact = !function.contains('*');
            Ok(Known {
                line: line.into(),
                kind: kind.into(),
                most,
                start: start.into(),
                end: end.into(),
                is_exact,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests;
