//! The list of known findings. The analysis fails if it makes a finding that the list lacks, or if the list contains a
//! finding that the analysis no longer makes.

use crate::machine::Finding;

/// A line of the list: the kind of a finding, the maximum number of bytes, and the name of the function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Known {
    /// The text of the line.
    pub line: String,
    kind: String,
    most: usize,
    name: String,
}

impl Known {
    /// True if the line describes the finding.
    pub fn describes(&self, finding: &Finding) -> bool {
        finding.bytes <= self.most && self.matches(&finding.kind.to_string(), &finding.function)
    }

    /// True if the line describes a reason why runs stopped. The kind of such a line is `stopped`. In place of a function, the line
    /// contains the place and the reason.
    pub fn describes_stop(&self, stop: &str) -> bool {
        stop.strip_prefix("stopped at ").is_some_and(|stop| self.matches("stopped", stop))
    }

    fn matches(&self, kind: &str, name: &str) -> bool {
        kind == self.kind && matches(&self.name, name)
    }
}

/// True if a text has the form of a pattern, in which `*` stands for any text.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(place) = rest.find(part) else { return false };
        rest = &rest[place + part.len()..];
    }
    rest.ends_with(last)
}

/// The lines of a list, without empty lines and without lines that start with `#`, which state reasons.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Reads the list. A line is `kind: function`, or `kind, at most N bytes: function` for secrets that are left behind. `*` stands for
/// any text of a name. Lines that start with `#` state reasons.
///
/// # Errors
/// A message for a line of another form.
pub fn parse(text: &str) -> Result<Vec<Known>, String> {
    lines(text)
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
            Ok(Known { line: line.into(), kind: kind.into(), most, name: function.into() })
        })
        .collect()
}

#[cfg(test)]
mod tests;
