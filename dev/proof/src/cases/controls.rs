//! The functions that leak on purpose. If the analysis does not report each of them, its other results prove nothing.

use std::rc::Rc;
use std::sync::Arc;

use super::session::{Buffer, Session};
use crate::contracts;
use crate::image::Image;
use crate::machine::{Kind, Machine, Program};
use crate::semantics;
use crate::taint::Taint;

/// The controls, each with the kind of finding that the analysis must report.
const CONTROLS: [(&str, Kind); 14] = [
    ("proof_control_branch", Kind::Branch),
    ("proof_control_address", Kind::Address),
    ("proof_control_time", Kind::Time),
    ("proof_control_register", Kind::Register),
    ("proof_control_preserved", Kind::Preserved),
    ("proof_control_preserved", Kind::Register),
    ("proof_control_stack", Kind::Stack),
    ("proof_control_heap", Kind::Heap),
    ("proof_control_read", Kind::Access),
    ("proof_control_write", Kind::Access),
    ("proof_control_partial", Kind::Output),
    ("proof_control_result", Kind::Result),
    ("proof_control_static", Kind::Static),
    ("proof_control_unfreed", Kind::Heap),
];

/// Runs the controls. Returns the names of the controls for which the analysis does not report the expected finding.
pub fn missed(image: &Arc<Image>) -> Vec<&'static str> {
    let program = Rc::new(Program::<Taint>::new(Arc::clone(image), semantics::all(), contracts::answer));
    let is_missed = |(function, kind): &(&str, Kind)| {
        let machine = Machine::new(Rc::clone(&program));
        let mut session = Session { machine, kernel: 0, results: Vec::new(), seed: 0 };
        let secret = session.secret(Buffer(20), &[0x5b; 16], false);
        let result = session.public(Buffer(21), &[0xee; 16], true);
        if session.call(function, &[secret, result]).is_ok() {
            session.check(Buffer(21), "the result", &[0xa4; 16]);
            session.check_heap();
        }
        !session.machine.findings.keys().any(|finding| finding.kind == *kind)
    };
    // Kernels that do not clear registers and the stack leave secrets there, which is not a finding.
    let is_finding = |(_, kind): &&(&str, Kind)| {
        image.convention().clears || !matches!(kind, Kind::Register | Kind::Stack)
    };
    CONTROLS
        .iter()
        .filter(is_finding)
        .filter(|control| is_missed(control))
        .map(|(function, _)| *function)
        .collect()
}
