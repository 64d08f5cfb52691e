//! `--explain`: the kernels that were used, and the reasons for their choice.

use lockstep::hazmat::planner::{Considered, Decision, Planner};
use lockstep_report::hang;

use crate::text;

/// Maximum number of kernels that are listed after the chosen kernel.
const MAX_OTHERS: usize = 4;

/// The decisions of a planner, as text.
pub(crate) fn explain(planner: &Planner) -> String {
    let decisions = planner.decisions();
    if decisions.is_empty() {
        return "no work was planned".into();
    }
    let mut text = String::new();
    for decision in &decisions {
        describe(&mut text, decision);
    }
    text.trim_end().to_owned()
}

fn describe(text: &mut String, decision: &Decision) {
    let Decision { operation, key, shape, calls, bytes, considered } = decision;
    let messages = match shape.messages {
        1 => String::new(),
        messages => format!(" in {messages} messages"),
    };
    let summary = format!(
        "{operation}, AES-{}, {}{messages}; {}, {} in total",
        key.bits(),
        text::bytes(shape.bytes as u64),
        text::count(*calls as usize, "such call"),
        text::bytes(*bytes),
    );
    // The other lines are indented by ten characters, the length of `lockstep: ` at the start of the first line.
    *text += &hang("", 10, &summary);
    let (chosen, others): (Vec<_>, Vec<_>) = considered.iter().partition(|choice| choice.is_chosen);
    for choice in chosen.iter().chain(others.iter().take(MAX_OTHERS)) {
        *text += &line(choice);
    }
    if others.len() > MAX_OTHERS {
        *text += &format!("  and {} slower ones\n", others.len() - MAX_OTHERS);
    }
}

fn line(choice: &Considered) -> String {
    let mark = if choice.is_chosen { "->" } else { "  " };
    let source = if choice.is_measured { "measured" } else { "as the device states" };
    let why = choice.passed_over.as_ref().map_or(String::new(), |why| format!("; passed over: {why}"));
    let label = format!("  {mark} {:>9}  ", time(choice.ns));
    hang(&label, label.len(), &format!("{} on {}, {source}{why}", choice.kernel, choice.device))
}

/// A time with its unit, to three figures.
pub(crate) fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 999.5 => (ns, "ns"),
        ns if ns < 999_500.0 => (ns / 1e3, "us"),
        ns if ns < 999_500_000.0 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    match value {
        value if value < 9.995 => format!("{value:.2} {unit}"),
        value if value < 99.95 => format!("{value:.1} {unit}"),
        value => format!("{value:.0} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times_have_three_figures() {
        let all = [0.0, 1.234, 99.9, 999.7, 12_345.0, 99_960.0, 5e6, 2.5e9, 123e9].map(time);
        let expected =
            ["0.00 ns", "1.23 ns", "99.9 ns", "1.00 us", "12.3 us", "100 us", "5.00 ms", "2.50 s", "123 s"];
        assert_eq!(all, expected);
    }
}
