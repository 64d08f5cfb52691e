//! Tests of the events that an observer receives during a run.

use lockstep_core::Key;
use lockstep_qpu::asm::assemble;
use lockstep_qpu::chip::{Chip, ChipError, ProgramRun, Simulator};
use lockstep_qpu::launch::{Job, Launch};
use lockstep_qpu::sim::timing::CLOCKS_PER_INSTRUCTION;
use lockstep_qpu::sim::{Event, Machine, Observer, Program, QPUS, Run, Stalls};

/// An observer that stores all events.
#[derive(Default)]
struct Events(Vec<Event>);

impl Observer for Events {
    fn executed(&mut self, event: Event) {
        self.0.push(event);
    }
}

/// The simulator with an observer.
#[derive(Default)]
struct Observed(Events);

impl Chip for Observed {
    fn reserve(&mut self, bytes: usize) -> Result<u32, ChipError> {
        Simulator.reserve(bytes)
    }

    fn run(&mut self, run: ProgramRun<'_>) -> Result<Run, ChipError> {
        let mut machine = Machine::new(run.program, run.uniforms);
        machine.run_observed(run.memory, run.budget, &mut self.0).map_err(ChipError::Fault)
    }
}

#[test]
fn events_add_up_to_the_totals() {
    let key = Key::new(&[7; 16]).unwrap();
    let input = [5; 64 * 12 * 2];
    let job = Job { keys: key.round_keys(), counter: [0; 16], input: &input, other: &[] };
    let mut observed = Observed::default();
    let launch = Launch::Packed { decrypts: false };
    let (output, run) = launch.run(&mut observed, &job, QPUS).unwrap();
    assert_eq!((output, run), launch.simulate(&job, QPUS).unwrap());
    let events = observed.0.0;
    assert_eq!(events.len() as u64, run.instructions);
    let mut stalls = Stalls::default();
    for qpu in 0..QPUS {
        let mut clock = 0;
        for event in events.iter().filter(|event| event.qpu == qpu) {
            assert_eq!(event.clock, clock + event.stalls.total());
            clock = event.clock + CLOCKS_PER_INSTRUCTION;
            stalls += event.stalls;
        }
    }
    let counters = run.counters;
    let expected = Stalls {
        texture: counters.tmu_stall_clocks,
        load: counters.load_stall_clocks,
        store: counters.store_stall_clocks,
        synchronization: counters.synchronization_clocks,
    };
    assert_eq!(stalls, expected);
    assert!(stalls.texture > 0 && stalls.store > 0 && stalls.synchronization > 0);
}

#[test]
fn causes_are_named() {
    let source = "mov r0, elem_num\nshl r0, r0, 2\nmov t0s, r0\nnop; nop; ldtmu0\nmov ra0, r4\nnop; nop; thrend\nnop\nnop\n";
    let program = Program::new(&assemble(source).unwrap().instructions);
    let mut events = Events::default();
    Machine::new(&program, &[0]).run_observed(&mut [0; 64], 1000, &mut events).unwrap();
    // The request is made at clock 8, and its result is ready after 66 clocks. Without the wait, the load would be executed
    // at clock 12.
    let load = events.0[3];
    assert_eq!((load.address, load.clock), (24, 74));
    assert_eq!(load.stalls.causes().collect::<Vec<_>>(), [("texture unit", 62)]);
}
