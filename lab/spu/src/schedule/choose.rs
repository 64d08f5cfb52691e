//! Chooses between alternatives, to balance the load of both pipes.

use super::Node;
use super::flow::{CarriedState, Flow, Origin, Value};

/// A loop body without alternatives.
#[derive(Debug, Clone)]
pub(super) struct Body {
    pub nodes: Vec<Node>,
    /// For each value, the index of the node that computes it.
    pub made_by: Vec<Option<usize>>,
    /// For each constant, parameter and carried value, the index of its quadword in the pool.
    pub pool_of: Vec<Option<usize>>,
    pub carried: Vec<CarriedState>,
    /// For each carried value, the index of its state in `carried`.
    pub carried_of: Vec<Option<usize>>,
    pub pool: Vec<[u8; 16]>,
    pub parameters: Vec<usize>,
    pub lanes: u32,
}

impl Body {
    /// Number of instructions on each pipe.
    pub(super) fn counts(&self) -> [usize; 2] {
        let odd = self.nodes.iter().filter(|node| node.pipe() == 1).count();
        [self.nodes.len() - odd, odd]
    }
}

pub(super) fn balanced(flow: &Flow) -> Body {
    let taken = decide(flow);
    let chosen = |mut value: Value| loop {
        match flow.origins[value.0 as usize] {
            Origin::Choice(choice) => value = flow.choices[choice].values[taken[choice]],
            _ => return value,
        }
    };
    let wanted = wanted(flow, &taken, &chosen);
    let mut nodes = Vec::new();
    let mut made_by = vec![None; flow.origins.len()];
    for (i, node) in flow.nodes.iter().enumerate() {
        if !wanted[i] {
            continue;
        }
        let mut node = *node;
        for source in node.sources.iter_mut().flatten() {
            *source = chosen(*source);
        }
        if let Some(out) = node.out {
            made_by[out.0 as usize] = Some(nodes.len());
        }
        nodes.push(node);
    }
    let mut carried = flow.carried.clone();
    let mut carried_of = vec![None; flow.origins.len()];
    for (i, state) in carried.iter_mut().enumerate() {
        carried_of[state.value.0 as usize] = Some(i);
        state.next = state.next.map(chosen);
    }
    let pool_of = flow
        .origins
        .iter()
        .map(|origin| match origin {
            Origin::Pool(at) => Some(*at),
            Origin::Carried(index) => Some(flow.carried[*index].start),
            _ => None,
        })
        .collect();
    let lanes = nodes.iter().map(|node| node.lane).max().unwrap_or(0) + 1;
    let (pool, parameters) = (flow.pool.clone(), flow.parameters.clone());
    Body { nodes, made_by, pool_of, carried, carried_of, pool, parameters, lanes }
}

/// Returns for each node whether the node is needed. A node of a rejected alternative is not needed. Any other node is needed if it is a
/// store or if its result is used.
fn wanted(flow: &Flow, taken: &[usize], chosen: &impl Fn(Value) -> Value) -> Vec<bool> {
    let mut needed = vec![false; flow.origins.len()];
    for next in flow.carried.iter().filter_map(|state| state.next) {
        needed[chosen(next).0 as usize] = true;
    }
    let mut wanted = vec![false; flow.nodes.len()];
    for (i, node) in flow.nodes.iter().enumerate().rev() {
        let other_way =
            |(choice, &taken): (&super::flow::Choice, &usize)| choice.nodes[1 - taken].contains(&i);
        if flow.choices.iter().zip(taken).any(other_way) {
            continue;
        }
        wanted[i] = node.out.is_none_or(|out| needed[out.0 as usize]);
        if wanted[i] {
            node.sources().for_each(|source| needed[chosen(source).0 as usize] = true);
        }
    }
    wanted
}

/// Selects an alternative, 0 or 1, for each choice. The search starts with all first alternatives, and changes one
/// choice at a time while this decreases the load of the fuller pipe.
fn decide(flow: &Flow) -> Vec<usize> {
    let mut taken = vec![0; flow.choices.len()];
    let mut load = [0i64; 2];
    for node in &flow.nodes {
        load[node.pipe()] += 1;
    }
    let of = |choice: usize, way: usize| {
        let mut load = [0i64; 2];
        for node in &flow.nodes[flow.choices[choice].nodes[way].clone()] {
            load[node.pipe()] += 1;
        }
        load
    };
    for choice in 0..taken.len() {
        let unused = of(choice, 1);
        load = [load[0] - unused[0], load[1] - unused[1]];
    }
    loop {
        let fuller = |load: [i64; 2]| (load[0].max(load[1]), load[0] + load[1]);
        let best = (0..taken.len())
            .map(|choice| {
                let (old, new) = (of(choice, taken[choice]), of(choice, 1 - taken[choice]));
                (choice, [load[0] - old[0] + new[0], load[1] - old[1] + new[1]])
            })
            .min_by_key(|&(choice, load)| (fuller(load), choice));
        match best {
            Some((choice, new)) if fuller(new) < fuller(load) => {
                taken[choice] = 1 - taken[choice];
                load = new;
            }
            _ => return taken,
        }
    }
}
