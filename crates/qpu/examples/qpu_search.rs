//! Searches for better hints of the bitsliced kernels, and prints them for `src/kernels/bitslice/hints`.

use std::time::Instant;

use lockstep_qpu::compiler::scheduled::{self, Hints};
use lockstep_qpu::kernels::bitslice;

fn main() {
    let attempts = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(200);
    let code = bitslice::ctr();
    let start = Instant::now();
    let hints = scheduled::search(&code, &Hints::default(), attempts, 7, |part, before, after| {
        eprintln!("part {part}: {before} words, now {after}, after {:.1} s", start.elapsed().as_secs_f64());
    })
    .expect("a kernel that fits into the registers");
    println!("{:?}\n{:?}", hints.priorities, hints.kinds);
}
