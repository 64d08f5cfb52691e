//! Compares the clock cycles of every kernel with those in the paper: `cargo run --release -p lockstep-spu --example clocks
//! [KERNEL]`.

use lockstep_spu::kernels::{KERNELS, PUBLISHED, measure};
use lockstep_spu::schedule::Effort;

fn main() {
    let only = std::env::args().nth(1);
    println!(
        "{:<16} {:<14} {:>14} {:>16} {:>26} {:>20} dual",
        "kernel", "pass", "paper", "round, last", "clocks a block", "Gbit/s"
    );
    for kernel in KERNELS
        .iter()
        .chain(PUBLISHED)
        .filter(|kernel| only.as_ref().is_none_or(|only| kernel.name.contains(only.as_str())))
    {
        let mut seen = Vec::new();
        for &(pass, of) in kernel.loops {
            if seen.contains(&of) {
                continue;
            }
            seen.push(of);
            let paper = kernel.paper.map_or("-".into(), |(round, last)| format!("{round}, {last}"));
            let clocks = match measure::clocks(of, Effort::Full) {
                Ok(clocks) => clocks,
                Err(why) => {
                    println!("{:<16} {pass:?}: {why}", kernel.name);
                    continue;
                }
            };
            let rates = clocks.gigabits().map(|rate| format!("{rate:.3}")).join("/");
            let dual = measure::summary(of, 10).map_or(0.0, |summary| 100.0 * summary.dual_rate());
            let own = format!("{:.2}, {:.2}", clocks.round, clocks.last);
            let block = clocks.block.map(|block| block.to_string()).join("/");
            println!(
                "{:<16} {:<14} {paper:>14} {own:>16} {block:>26} {rates:>20} {dual:.0} %",
                kernel.name,
                format!("{pass:?}")
            );
        }
    }
}
