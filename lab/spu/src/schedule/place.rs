//! Modulo scheduling: the issue cycle of each instruction.
//!
//! The reservation table has one row for each pipe, with `interval` cycles. In each cycle, each pipe whose slot is free
//! modulo the interval issues the ready instruction with the longest remaining path. If the schedule becomes too long,
//! or a carried value is late, the interval is increased by one cycle.

use std::collections::BTreeSet;

use super::choose::Body;
use super::flow::Value;
use crate::isa::Class;

/// The issue cycles of the instructions of an iteration.
#[derive(Debug, Clone)]
pub(super) struct Placement {
    /// Cycles between the starts of iterations.
    pub interval: usize,
    /// The issue cycle of each node.
    pub times: Vec<usize>,
    /// Number of overlapping iterations.
    pub stages: usize,
    /// The cycle of the interval in which the iteration count is decremented, and the cycle of the hint (`hint_at`).
    /// The branch is in the last cycle.
    pub count_at: usize,
    pub hint_at: Option<usize>,
}

/// Minimum and maximum number of cycles from the hint to the branch. A hint reaches 255 words, and each cycle has two
/// words.
const HINT_DISTANCE_CYCLES: std::ops::RangeInclusive<usize> = 17..=100;

/// Maximum interval relative to the lower bound, in percent.
const LONGEST: usize = 300;

impl Placement {
    fn new(interval: usize, times: Vec<usize>) -> Placement {
        let last = times.iter().copied().max().unwrap_or(0);
        let end = interval - 1;
        let hint_at =
            (end > *HINT_DISTANCE_CYCLES.start()).then(|| end - HINT_DISTANCE_CYCLES.end().min(&(end)));
        Placement { interval, times, stages: last / interval + 1, count_at: end - 3, hint_at }
    }
}

/// Places one instruction after the other.
pub(super) fn in_order(body: &Body) -> Placement {
    let mut times = vec![0; body.nodes.len()];
    for (time, node) in Graph::new(body).order().into_iter().enumerate() {
        times[node] = time;
    }
    Placement::new(body.nodes.len() + 4, times)
}

/// Returns possible schedules in which at most `stages` iterations overlap. The best schedule comes first.
pub(super) fn candidates(body: &Body, stages: usize) -> impl Iterator<Item = Placement> {
    let mut graph = Graph::new(body);
    graph.stages = stages;
    let [even, odd] = body.counts();
    // The branch and its hint use the odd pipe, and the decrement of the count uses the even pipe.
    let slots = (even + 1).max(odd + 2).max(8);
    let longest = graph.longest_cycle();
    let through = graph.heights.iter().max().map_or(0, |height| height + graph.lead());
    let least = slots.max(longest).max(if stages == 1 { through } else { 0 });
    let chains = if longest > slots && stages > 1 { graph.chains(least) } else { Vec::new() };
    let tries = least..least * LONGEST / 100 + 16;
    let others = tries.flat_map(move |interval| {
        let close = interval < least + least / 12 + 4;
        let seeds = if close { 12 } else { 3 };
        let graph = graph.clone();
        (0..seeds).filter_map(move |seed| graph.attempt(interval, seed))
    });
    chains.into_iter().chain(others)
}

/// Number of attempts for a loop whose length is determined by a chain of dependent instructions.
const CHAIN_SEEDS: u64 = 60;

/// The constraints between instructions.
#[derive(Debug, Clone)]
struct Graph {
    pipes: Vec<usize>,
    lanes: Vec<u32>,
    lane_count: u32,
    /// For each node: its successors in the same iteration, and the minimum distance in cycles.
    after: Vec<Vec<(usize, usize)>>,
    before: Vec<Vec<(usize, usize)>>,
    /// For each carried value: the node that computes it, the node that uses it in the next iteration, and the minimum
    /// distance in cycles.
    carried: Vec<(usize, usize, usize)>,
    /// Producer and consumer in the same iteration: the consumer must issue before the producer issues again in the
    /// next iteration.
    lives: Vec<(usize, usize)>,
    /// For each node: the number of cycles from it to the end of the longest path.
    heights: Vec<usize>,
    /// For each node, whether it is placed after all other nodes, as late as possible. Such nodes are loads that depend
    /// on no instruction of the iteration, and the increments of pointers that follow these loads.
    late: Vec<Late>,
    /// For each node, a number that is equal for corresponding nodes of different rounds and blocks.
    alike: Vec<u64>,
    /// Maximum number of overlapping iterations.
    stages: usize,
}

/// A step of a hash function.
fn mixed(a: u64, b: u64) -> u64 {
    (a ^ b.rotate_left(23)).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (a >> 29)
}

/// Returns for each node a hash of its operation and of the operations of its predecessors, three levels deep. The index of a parameter is
/// ignored, since round keys differ from round to round.
fn alike(body: &Body) -> Vec<u64> {
    let own = body.nodes.iter().map(|node| mixed(node.op as u64, node.imm as u64));
    let mut numbers: Vec<u64> = own.collect();
    for _ in 0..3 {
        let of = |value: Value| match (body.made_by[value.0 as usize], body.pool_of[value.0 as usize]) {
            (Some(node), _) => numbers[node],
            (_, Some(at)) if !body.parameters.contains(&at) => at as u64 + 1000,
            _ => 1,
        };
        let next = body
            .nodes
            .iter()
            .enumerate()
            .map(|(i, node)| node.sources().fold(numbers[i], |n, s| mixed(n, of(s))));
        numbers = next.collect();
    }
    numbers
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Late {
    No,
    Load,
    AfterLoads,
}

/// Number of cycles at the start of an iteration in which only loads are placed. The first number, for iterations that
/// do not overlap, is the latency of a load. The second is larger, since these cycles cost nothing if iterations
/// overlap.
const LEAD: [usize; 2] = [7, 24];

impl Graph {
    fn new(body: &Body) -> Graph {
        let count = body.nodes.len();
        let mut graph = Graph {
            pipes: body.nodes.iter().map(|node| node.pipe()).collect(),
            lanes: body.nodes.iter().map(|node| node.lane).collect(),
            lane_count: body.lanes,
            after: vec![Vec::new(); count],
            before: vec![Vec::new(); count],
            carried: Vec::new(),
            lives: Vec::new(),
            heights: vec![0; count],
            alike: alike(body),
            stages: 1,
            late: body
                .nodes
                .iter()
                .map(|node| if node.op.class() == Class::Ls { Late::Load } else { Late::No })
                .collect(),
        };
        let maker = |value: Value| body.made_by[value.0 as usize];
        for (user, node) in body.nodes.iter().enumerate() {
            for source in node.sources() {
                if let Some(from) = maker(source) {
                    graph.edge(from, user, body.nodes[from].op.latency() as usize);
                    graph.lives.push((from, user));
                    graph.late[user] = Late::No;
                } else if let Some(state) = body.carried_of[source.0 as usize] {
                    let next = body.carried[state].next.expect("every carried value is carried on");
                    let from = maker(next).expect("carried values are made by instructions");
                    graph.carried.push((from, user, body.nodes[from].op.latency() as usize));
                    if from != user {
                        // The user reads the old value before the new value is written.
                        graph.edge(user, from, 1);
                    }
                }
            }
        }
        for node in 0..count {
            if graph.late[node] == Late::No
                && graph.before[node].iter().any(|&(from, cycles)| {
                    // A distance of one cycle means that `from` reads the old value before this node writes the new
                    // value.
                    cycles == 1 && graph.late[from] == Late::Load
                })
            {
                graph.late[node] = Late::AfterLoads;
            }
        }
        for node in graph.order().into_iter().rev() {
            let ways = graph.after[node].iter().map(|&(next, cycles)| graph.heights[next] + cycles);
            graph.heights[node] = ways.max().unwrap_or(0);
        }
        graph
    }

    fn lead(&self) -> usize {
        LEAD[usize::from(self.stages > 1)]
    }

    fn edge(&mut self, from: usize, to: usize, cycles: usize) {
        self.after[from].push((to, cycles));
        self.before[to].push((from, cycles));
    }

    /// Returns all nodes in topological order. Independent nodes stay in the original order.
    fn order(&self) -> Vec<usize> {
        let mut missing: Vec<usize> = self.before.iter().map(Vec::len).collect();
        let mut ready: BTreeSet<usize> = (0..missing.len()).filter(|&node| missing[node] == 0).collect();
        let mut order = Vec::new();
        while let Some(node) = ready.pop_first() {
            order.push(node);
            for &(next, _) in &self.after[node] {
                missing[next] -= 1;
                if missing[next] == 0 {
                    ready.insert(next);
                }
            }
        }
        assert_eq!(order.len(), self.after.len(), "a carried value is used after it is made anew");
        order
    }

    /// Returns a lower bound of the interval: the longest path from a carried value to its next value.
    fn longest_cycle(&self) -> usize {
        let order = self.order();
        let mut longest = 0;
        let mut done: Vec<usize> = Vec::new();
        for &(from, user, latency) in &self.carried {
            if done.contains(&user) {
                continue;
            }
            done.push(user);
            let mut way = vec![None; order.len()];
            way[user] = Some(0);
            for &node in &order {
                let Some(so_far) = way[node] else { continue };
                for &(next, cycles) in &self.after[node] {
                    way[next] = way[next].max(Some(so_far + cycles));
                }
            }
            longest = longest.max(way[from].map_or(0, |cycles| cycles + latency));
        }
        longest
    }

    /// Schedules a loop whose length is determined by a chain through the iterations. The result depends on how ties
    /// are broken, since each conflict on a pipe delays the chain. This function first tries many seeds of
    /// [`Graph::place`] with a long interval. It then tries the best seeds with short intervals.
    fn chains(&self, least: usize) -> Vec<Placement> {
        let mut tries: Vec<(usize, u64)> = (0..CHAIN_SEEDS)
            .filter_map(|seed| {
                let free = self.place(least * 3, seed)?;
                let needed = |&(from, user, latency): &(usize, usize, usize)| {
                    (free.times[from] + latency).saturating_sub(free.times[user])
                };
                Some((self.carried.iter().map(needed).max()?.max(least), seed))
            })
            .collect();
        tries.sort();
        let shortest = tries.first().map_or(0, |first| first.0);
        let best = tries.into_iter().take_while(|&(interval, _)| interval < shortest + 4).take(12);
        let mut found: Vec<Placement> = best
            .filter_map(|(interval, seed)| {
                (interval..interval + 6).find_map(|interval| self.attempt(interval, seed))
            })
            .collect();
        found.sort_by_key(|placement| placement.interval);
        found
    }

    fn attempt(&self, interval: usize, seed: u64) -> Option<Placement> {
        self.place(interval, seed).filter(|placement| self.holds(placement))
    }

    /// The schedule for an interval, or `None` if this attempt finds none. The seed selects whether the blocks in
    /// flight are staggered, and whether older blocks have priority. Priority for older blocks needs fewer registers.
    /// Seeds from 3 on also select how ties are broken.
    fn place(&self, interval: usize, seed: u64) -> Option<Placement> {
        let count = self.pipes.len();
        let mut placement = Placement::new(interval, vec![usize::MAX; count]);
        let mut taken = [vec![false; interval], vec![false; interval]];
        taken[0][placement.count_at] = true;
        taken[1][interval - 1] = true;
        if let Some(at) = placement.hint_at {
            taken[1][at] = true;
        }
        // The distance between staggered blocks is 55 to 100 % of even spacing. A smaller distance leaves time at the
        // end of the interval for the last block.
        let even = interval / self.lane_count as usize;
        let stagger = match seed % 3 {
            1 => 0,
            _ if self.stages == 1 => 0,
            _ => even * [20, 17, 14, 11][seed as usize / 3 % 4] / 20,
        };
        let age = if seed % 3 == 2 { 1000 } else { 1 };
        let release = |node: usize| self.lanes[node] as usize * stagger;
        let spread = [8, 16, 32][seed as usize / 3 % 3];
        let rank: Vec<i64> = (0..count)
            .map(|node| {
                let jitter = if seed < 3 { 0 } else { (mixed(seed, self.alike[node]) >> 40) as i64 % spread };
                (self.heights[node] as i64 - release(node) as i64 * age) * 4 + jitter
            })
            .collect();
        let is_late = |node: usize| self.late[node] != Late::No;
        let early = |edges: &Vec<(usize, usize)>| edges.iter().filter(|edge| !is_late(edge.0)).count();
        let mut missing: Vec<usize> = self.before.iter().map(early).collect();
        let mut earliest: Vec<usize> = (0..count).map(|node| release(node) + self.lead()).collect();
        let mut waiting: Vec<usize> =
            (0..count).filter(|&node| missing[node] == 0 && !is_late(node)).collect();
        let mut left = (0..count).filter(|&node| !is_late(node)).count();
        for now in self.lead()..interval * self.stages {
            if left == 0 {
                break;
            }
            for (pipe, slots) in taken.iter_mut().enumerate() {
                if slots[now % interval] {
                    continue;
                }
                let ready = |&(_, &node): &(usize, &usize)| self.pipes[node] == pipe && earliest[node] <= now;
                let best = waiting
                    .iter()
                    .enumerate()
                    .filter(ready)
                    .max_by_key(|&(_, &node)| (rank[node], count - node));
                let Some((at, &node)) = best else { continue };
                waiting.swap_remove(at);
                slots[now % interval] = true;
                placement.times[node] = now;
                left -= 1;
                for &(next, cycles) in self.after[node].iter().filter(|edge| !is_late(edge.0)) {
                    earliest[next] = earliest[next].max(now + cycles);
                    missing[next] -= 1;
                    if missing[next] == 0 {
                        waiting.push(next);
                    }
                }
            }
        }
        if left > 0 || !self.place_late(&mut placement, &mut taken) {
            return None;
        }
        placement.stages = placement.times.iter().max()? / interval + 1;
        if placement.stages > self.stages {
            return None;
        }
        Some(placement)
    }

    /// Places loads in the latest free slots before their first use, and then their successors in the first free slots.
    fn place_late(&self, placement: &mut Placement, taken: &mut [Vec<bool>; 2]) -> bool {
        let interval = placement.interval;
        let latest = |node: usize, times: &[usize]| {
            let uses = self.after[node].iter().filter(|edge| self.late[edge.0] == Late::No);
            uses.map(|&(next, cycles)| times[next].saturating_sub(cycles)).min().unwrap_or(0)
        };
        let mut loads: Vec<usize> =
            (0..self.pipes.len()).filter(|&node| self.late[node] == Late::Load).collect();
        loads.sort_by_key(|&node| latest(node, &placement.times));
        for node in loads {
            let to = latest(node, &placement.times);
            let slots = &mut taken[self.pipes[node]];
            let Some(at) = (to.saturating_sub(interval)..=to).rev().find(|at| !slots[at % interval]) else {
                return false;
            };
            slots[at % interval] = true;
            placement.times[node] = at;
        }
        for node in (0..self.pipes.len()).filter(|&node| self.late[node] == Late::AfterLoads) {
            let from = self.before[node]
                .iter()
                .map(|&(from, cycles)| placement.times[from] + cycles)
                .max()
                .unwrap_or(0);
            let slots = &mut taken[self.pipes[node]];
            let Some(at) = (from..from + interval).find(|at| !slots[at % interval]) else { return false };
            slots[at % interval] = true;
            placement.times[node] = at;
        }
        true
    }

    /// True if carried values are ready in time, and no value is overwritten before it is used.
    fn holds(&self, placement: &Placement) -> bool {
        let times = &placement.times;
        let carried = self
            .carried
            .iter()
            .all(|&(from, user, latency)| times[user] + placement.interval >= times[from] + latency);
        carried && self.lives.iter().all(|&(maker, user)| times[user] < times[maker] + placement.interval)
    }
}
