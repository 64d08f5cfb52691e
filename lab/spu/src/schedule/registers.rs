//! Register allocation.
//!
//! In the steady state the loop is a circle of instruction slots. A value is live on an arc of this circle, from its
//! instruction to its last use. Constants, parameters and carried values are live on the whole circle. Values whose
//! arcs overlap get different registers. The code before and after the loop consists of instructions of the loop in
//! the same slots, so it needs no more registers.

use super::choose::Body;
use super::flow::Value;
use super::place::Placement;
use crate::isa::Reg;

/// The register of each value, and one for the iteration count.
#[derive(Debug, Clone)]
pub(super) struct Registers {
    pub of: Vec<Option<Reg>>,
    pub turns: Reg,
    pub used: usize,
}

/// The first register that programs may use: the conventions reserve $0 (link) and $1 (stack).
const FIRST: usize = 2;

pub(super) fn allocate(body: &Body, placement: &Placement) -> Result<Registers, String> {
    let circle = placement.interval * 2;
    let slot = |node: usize| placement.times[node] * 2 + body.nodes[node].pipe();
    let mut of: Vec<Option<Reg>> = vec![None; body.made_by.len()];
    let too_many = |count: usize| {
        let most = Reg::COUNT - FIRST;
        format!("{count} values at once: the SPU has {most} registers for them")
    };
    // Used constants and parameters, and carried values with their next values, are live on the whole circle.
    let mut last_use = vec![0; body.made_by.len()];
    let mut used = vec![false; body.made_by.len()];
    for (i, node) in body.nodes.iter().enumerate() {
        for source in node.sources() {
            let source = source.0 as usize;
            last_use[source] = last_use[source].max(slot(i));
            used[source] = true;
        }
    }
    let carried: Vec<_> = body.carried.iter().map(|state| state.value.0 as usize).collect();
    let pooled: Vec<_> = (0..of.len())
        .filter(|value| body.pool_of[*value].is_some() && used[*value] && !carried.contains(value))
        .collect();
    // One more register holds the iteration count.
    let whole = 1 + carried.len() + pooled.len();
    if whole > Reg::COUNT - FIRST {
        return Err(too_many(whole));
    }
    let mut registers = (FIRST..).map(|number| Reg::new(number as u8));
    let mut whole_circle = || registers.next().expect("they have been counted");
    let turns = whole_circle();
    for state in &body.carried {
        let reg = whole_circle();
        of[state.value.0 as usize] = Some(reg);
        let next = state.next.expect("every carried value is carried on");
        of[next.0 as usize] = Some(reg);
    }
    for value in pooled {
        of[value] = Some(whole_circle());
    }
    let next = FIRST + whole;
    // The arcs, in the order of their starts on the circle.
    let mut arcs: Vec<(usize, usize, Value)> = Vec::new();
    for (i, node) in body.nodes.iter().enumerate() {
        if let Some(out) = node.out.filter(|out| of[out.0 as usize].is_none()) {
            let start = slot(i);
            let length = last_use[out.0 as usize].saturating_sub(start).max(1);
            arcs.push((start % circle, length.min(circle), out));
        }
    }
    arcs.sort();
    let words = circle.div_ceil(64);
    let mut busy: Vec<Vec<u64>> = Vec::new();
    for (start, length, value) in arcs {
        let mut arc = vec![0u64; words];
        for place in start..start + length {
            let place = place % circle;
            arc[place / 64] |= 1 << (place % 64);
        }
        let fits = |busy: &Vec<u64>| busy.iter().zip(&arc).all(|(busy, arc)| busy & arc == 0);
        let at = match busy.iter().position(fits) {
            Some(at) => at,
            None => {
                busy.push(vec![0; words]);
                busy.len() - 1
            }
        };
        busy[at].iter_mut().zip(&arc).for_each(|(busy, arc)| *busy |= arc);
        if next + at >= Reg::COUNT {
            return Err(too_many(next + busy.len() - FIRST));
        }
        of[value.0 as usize] = Some(Reg::new((next + at) as u8));
    }
    Ok(Registers { of, turns, used: next + busy.len() - FIRST })
}
