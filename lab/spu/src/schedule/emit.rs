//! Emits a program from placed instructions with allocated registers.

use super::choose::Body;
use super::place::Placement;
use super::registers::Registers;
use super::{Effort, Node, Program};
use crate::asm::Assembler;
use crate::isa::{Format, Inst, Op, Reg};

/// The instructions of both pipes in a cycle of the loop, with their pipeline stages.
type Cycle = [Option<(Inst, usize)>; 2];

/// Emits a program: entry, prologue, loop, epilogue. This is one function, since all parts share the labels and the
/// registers.
pub(super) fn program(
    body: &Body,
    placement: &Placement,
    registers: &Registers,
    effort: Effort,
    origin: u32,
) -> Result<Program, String> {
    let interval = placement.interval;
    let mut cycles: Vec<Cycle> = vec![[None, None]; interval];
    for (i, node) in body.nodes.iter().enumerate() {
        let time = placement.times[i];
        let place = &mut cycles[time % interval][node.pipe()];
        assert!(place.is_none(), "two instructions in one slot");
        *place = Some((instruction(node, registers), time / interval));
    }
    let mut asm = Assembler::at(origin);
    // The values that are loaded into registers before the loop. Their addresses are relative, so a program without tables runs at any
    // address.
    let pool: Vec<_> = body.pool.iter().map(|_| asm.label()).collect();
    let turns = asm.label();
    asm.lqr(registers.turns, turns);
    for (value, reg) in registers.of.iter().enumerate() {
        if let (Some(at), Some(reg)) = (body.pool_of[value], reg) {
            asm.lqr(*reg, pool[at]);
        }
    }
    asm.align_pair();
    let compact = effort == Effort::Off;
    for turn in 0..placement.stages - 1 {
        copy(&mut asm, &cycles, |stage| stage <= turn, compact);
    }
    let (start, branch) = (asm.label(), asm.label());
    if effort != Effort::Off && placement.hint_at.is_none() {
        asm.hbrr(branch, start);
        asm.align_pair();
        (0..16).for_each(|_| {
            asm.nop();
            asm.lnop();
        });
    }
    asm.bind_named(start, "loop");
    for (at, cycle) in cycles.iter().enumerate() {
        let [even, odd] = cycle.map(|slot| slot.map(|(inst, _)| inst));
        let last = at == interval - 1;
        if at == placement.count_at && !compact {
            assert!(even.is_none());
            asm.ai(registers.turns, registers.turns, -1);
            asm.push(odd.unwrap_or(Inst::bare(Op::Lnop)));
        } else if Some(at) == placement.hint_at && !compact {
            asm.push(even.unwrap_or(Inst::bare(Op::Nop)));
            asm.hbrr(branch, start);
        } else if last {
            match (even, compact) {
                (Some(inst), _) => asm.push(inst),
                (None, false) => asm.nop(),
                (None, true) => asm.ai(registers.turns, registers.turns, -1),
            }
            asm.bind_named(branch, "loop_branch");
            asm.brnz(registers.turns, start);
        } else {
            pair(&mut asm, even, odd, compact);
        }
    }
    for turn in 1..placement.stages {
        copy(&mut asm, &cycles, |stage| stage >= turn, compact);
    }
    asm.align_pair();
    asm.stop(0);
    asm.begin_data();
    asm.bind_named(turns, "turns");
    let iterations_at = asm.here();
    asm.quadword([0; 16]);
    let base = asm.here();
    for (label, bytes) in pool.into_iter().zip(&body.pool) {
        asm.bind(label);
        asm.quadword(*bytes);
    }
    let image = asm.finish().map_err(|error| error.to_string())?;
    Ok(Program {
        image,
        parameters: body.parameters.iter().map(|&at| base + at as u32 * 16).collect(),
        carried: body
            .carried
            .iter()
            .map(|state| registers.of[state.value.0 as usize].expect("every carried value has a register"))
            .collect(),
        iterations_at,
        stages: placement.stages as u64,
        interval: interval as u64,
        counts: body.counts(),
        registers: registers.used,
    })
}

/// Emits the instructions of the active stages for one iteration of the prologue or of the epilogue.
fn copy(asm: &mut Assembler, cycles: &[Cycle], under_way: impl Fn(usize) -> bool, compact: bool) {
    for cycle in cycles {
        let [even, odd] = cycle.map(|slot| slot.filter(|&(_, stage)| under_way(stage)).map(|(inst, _)| inst));
        pair(asm, even, odd, compact);
    }
}

/// Emits a pair. If both pipes are idle, nothing is emitted, since the processor delays the next pair until its
/// operands are ready.
fn pair(asm: &mut Assembler, even: Option<Inst>, odd: Option<Inst>, compact: bool) {
    if even.is_none() && odd.is_none() {
        return;
    }
    match even {
        Some(inst) => asm.push(inst),
        None if !compact => asm.nop(),
        None => {}
    }
    match odd {
        Some(inst) => asm.push(inst),
        None if !compact => asm.lnop(),
        None => {}
    }
}

fn instruction(node: &Node, registers: &Registers) -> Inst {
    let reg = |value: Option<super::Value>| {
        value.map_or(Reg::new(0), |value| registers.of[value.0 as usize].expect("every value has a register"))
    };
    let [a, b, c] = node.sources;
    let mut inst =
        Inst { op: node.op, ra: reg(a), rb: reg(b), rc: reg(c), imm: node.imm, ..Inst::bare(node.op) };
    inst.rt = match node.op.format() {
        Format::Ri10QuadStore | Format::RrStore => {
            inst.rc = Reg::new(0);
            reg(c)
        }
        _ => reg(node.out),
    };
    debug_assert!(node.op != Op::Brnz, "the loop's branch is not part of the flow");
    inst
}
