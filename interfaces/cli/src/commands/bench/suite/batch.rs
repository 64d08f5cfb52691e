//! Calls on many messages, for each combination of number and size of the messages.

use std::time::Duration;

use lockstep_report::plot;

use super::{Axis, Outcome, add, by_shape};
use crate::commands::bench::report::{self, Section};
use crate::commands::bench::session::{Session, numbers};
use crate::commands::bench::workload::Shape;
use crate::error::Result;

const WORKS: [&str; 2] = ["gcm-256", "cbc-256"];
const SIZES: [usize; 3] = [64, 1 << 10, 16 << 10];
const MESSAGES: [usize; 6] = [1, 4, 16, 64, 1024, 16_384];
const QUICK_SIZES: [usize; 1] = [256];
const QUICK_MESSAGES: [usize; 2] = [1, 16];

/// The maximum number of bytes of a call.
const MAX_CALL: usize = 256 << 20;

/// The axis of numbers of messages.
const COUNT: Axis = Axis {
    label: "messages in a call",
    format: plot::number,
    value: |shape| shape.messages,
    cell: |shape| shape.messages.to_string(),
};

pub(super) fn run(session: &Session<'_>, section: &mut Section) -> Result<()> {
    let sizes = session.sizes(&SIZES, &QUICK_SIZES);
    let counts = if session.args.quick { &QUICK_MESSAGES[..] } else { &MESSAGES };
    let counts = numbers(&session.args.messages, counts);
    let subjects = session.subjects()?;
    let setting = session.setting(3, Duration::from_millis(50));
    for work in &session.works(&WORKS)? {
        for &size in &sizes {
            let shapes = counts.iter().map(|&messages| Shape { size, messages });
            let shapes = shapes.filter(|shape| shape.bytes() <= MAX_CALL);
            let outcomes = by_shape(session, section, &setting, &subjects, work, shapes)?;
            if outcomes.is_empty() {
                continue;
            }
            let title = format!("{}, messages of {}", work.name, report::size(size));
            let titles = (&*format!("{title}, GB/s by messages in a call"), &*title);
            add(section, titles, &COUNT, &outcomes, Vec::new());
            section.results.extend(outcomes.iter().map(Outcome::json));
        }
    }
    Ok(())
}
