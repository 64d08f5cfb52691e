//! Measures how many instructions per second the simulator executes on one core of the host.

use std::time::{Duration, Instant};

use lockstep_spu::kernels::{KERNELS, MAX_RUN_BYTES};
use lockstep_spu::schedule::Effort;
use lockstep_spu::sim::Machine;

fn main() {
    for kernel in KERNELS {
        let (_, of) = kernel.loops[0];
        let compiled = of.compile(10, Effort::Full).expect("every kernel compiles");
        let keys = [[7; 16]; 11];
        let mut machine = Machine::new();
        compiled.load(&mut machine, &keys).unwrap();
        let mut data = vec![1; MAX_RUN_BYTES];
        let mut best = f64::MAX;
        let start = Instant::now();
        let mut instructions = 0;
        while start.elapsed() < Duration::from_millis(300) {
            let before = Instant::now();
            instructions =
                compiled.run(&mut machine, &keys, &[0; 16], &mut data).expect("it runs").instructions;
            best = best.min(before.elapsed().as_secs_f64() / instructions as f64);
        }
        println!("{:<16} {:>6.1} million a second ({instructions} a call)", kernel.name, 1e-6 / best);
    }
}
