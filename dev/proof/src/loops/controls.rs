//! Functions whose loops go wrong only after many iterations. If they are not reported, the other results prove nothing.

use std::rc::Rc;
use std::sync::Arc;

use super::{Call, changes, parts, writes_all};
use crate::cases::modes::MODES;
use crate::cases::{Buffer, Session};
use crate::contracts;
use crate::image::Image;
use crate::machine::{Kind, Machine, Program, Stop};
use crate::semantics;
use crate::taint::Taint;

/// The controls, each with the kind of finding that the analysis must report.
const CONTROLS: [(&str, Option<Kind>); 4] = [
    ("proof_control_loop_right", None),
    ("proof_control_loop_branch", Some(Kind::Branch)),
    ("proof_control_loop_pointer", Some(Kind::Address)),
    ("proof_control_loop_late", Some(Kind::Branch)),
];

/// The kinds of the findings in the loop of a function.
fn findings(image: &Arc<Image>, function: &'static str) -> Result<Vec<Kind>, Stop> {
    let program = Rc::new(Program::<Taint>::new(Arc::clone(image), semantics::all(), contracts::answer));
    let mut session = Session { machine: Machine::new(program), kernel: 0, results: Vec::new(), seed: 0 };
    let unused = session.public(Buffer(0), &[0; 16], false);
    let ecb = MODES.iter().find(|mode| mode.name == "ECB encryption").expect("a mode of the list");
    let mode = ecb.with_function(function);
    let data = session.secrets(&[0x5b; 200]);
    let call =
        Call { session: &session, mode: &mode, keys: [unused, 0], register: Vec::new(), in_place: false };
    let found = call.find_loop(&data, 16)?;
    let parts = parts(call.start(&data[..16 * (found.last + 1)], 16)?, found, |_| (), &mut changes)?;
    let mut kinds: Vec<Kind> = [&parts.next, &parts.end]
        .iter()
        .flat_map(|walk| walk.machine.findings.keys())
        .map(|finding| finding.kind)
        .collect();
    kinds.extend((!writes_all(&parts, 16)).then_some(Kind::Output));
    Ok(kinds)
}

/// The names of the controls for which the analysis does not report the expected finding, or reports another one.
pub fn missed(image: &Arc<Image>) -> Vec<&'static str> {
    if image.is_arm {
        return Vec::new();
    }
    let is_missed = |(function, kind): &&(&'static str, Option<Kind>)| match (findings(image, function), kind)
    {
        (Ok(kinds), None) => !kinds.is_empty(),
        (Ok(kinds), Some(kind)) => !kinds.contains(kind),
        (Err(_), _) => true,
    };
    CONTROLS.iter().filter(is_missed).map(|(function, _)| *function).collect()
}
