//! Measures the speed of the simulator: the number of simulated instructions per second on one processor of the host. The program is a
//! loop of vector operations on 12 QPUs.

use std::time::Instant;

use lockstep_qpu::asm::assemble;
use lockstep_qpu::sim::{Machine, Program, QPUS};

const LOOP: &str = "ldi ra0, 200000\nldi r1, 0x1b1b1b1b\nldi r2, 0x01020304\n:again\n\
    xor r0, r1, r2; v8adds r3, r1, r2\nand r2, r0, r3; v8muld r3, r1, r3\nnop; mov r1, r0 >> 3\nsub.setf ra0, ra0, 1\n\
    brr.anynz -, :again\nadd r1, r1, r2; v8min r2, r2, r3\nmov rb1, r0\nor r2, r2, r1; v8max r1, r1, r3\n\
    nop; thrend\nnop\nnop\n";

fn main() {
    let program = assemble(LOOP).expect("a program without mistakes");
    let program = Program::new(&program.instructions);
    for run in 0..4 {
        let mut machine = Machine::new(&program, &[0; QPUS as usize]);
        let start = Instant::now();
        let run_totals = machine.run(&mut [], u64::MAX).expect("a program without faults");
        let rate = run_totals.instructions as f64 / start.elapsed().as_secs_f64() / 1e6;
        // The result of the first run, which is the warm-up, is not printed.
        if run > 0 {
            println!("{rate:.1} million instructions a second");
        }
    }
}
