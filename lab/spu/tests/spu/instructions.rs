//! Tests of single instructions, of calls, and of channels.

use lockstep_spu::asm::assemble;
use lockstep_spu::isa::Reg;
use lockstep_spu::sim::{FaultKind, Machine, Run, Summary};

const RESULTS: &str = include_str!("instruction-results.txt");

fn machine(source: &str) -> Machine {
    let mut machine = Machine::new();
    machine.load(&assemble("test.s", source).unwrap_or_else(|error| panic!("{error}\n{source}")));
    machine
}

#[test]
fn instructions_compute_the_results_of_a_second_implementation() {
    let lines = RESULTS.lines().filter(|line| !line.starts_with('#'));
    let mut checked = 0;
    for line in lines {
        let (text, values) = line.split_once('|').unwrap();
        let values: Vec<u128> =
            values.split(' ').map(|value| u128::from_str_radix(value, 16).unwrap()).collect();
        let mut machine = machine(&format!("{text}\nstop 0\n"));
        for (register, value) in (3..).zip(&values[..3]) {
            machine.set_register(Reg::new(register), *value);
        }
        machine.run(100).unwrap();
        let found = machine.register(Reg::new(3));
        assert_eq!(found, values[3], "{line}: {found:032x}");
        checked += 1;
    }
    assert_eq!(checked, 4 * 72);
}

#[test]
fn calls_return_to_the_instruction_after_them() {
    let source = "brsl $lr,twice\nila $9,twice\nbisl $lr,$9\nstop 5\nstop 6\ntwice: ai $3,$3,1\nbi $lr\n";
    let mut machine = machine(source);
    assert_eq!(machine.run(1000).unwrap().code, 5);
    assert_eq!(machine.register(Reg::new(3)) >> 96, 2);
    assert_eq!(machine.register(Reg::new(0)), 12 << 96, "the other words of the return address are zero");
}

/// Sets the parameters of a DMA command. The command transfers `$5` bytes between the address `$3` in the local store and the address `$4`
/// in main storage.
const COMMAND: &str = "\
    wrch $ch16,$3\nwrch $ch17,$20\nwrch $ch18,$4\nwrch $ch19,$5\nil $6,7\nwrch $ch20,$6\nwrch $ch21,$2\n";
/// Waits for tag 7.
const WAIT: &str = "il $6,0x80\nwrch $ch22,$6\nil $6,2\nwrch $ch23,$6\nrdch $7,$ch24\n";

fn transfer(get: bool, bytes: i32, local: i32, main: i32, rest: &str) -> Machine {
    let code = if get { 0x40 } else { 0x20 };
    let setup = format!("ila $3,{local}\nila $4,{main}\nila $5,{bytes}\nil $2,{code}\n");
    let mut machine = machine(&format!("{setup}{COMMAND}{rest}stop 0\n"));
    machine.set_main((0..=255).cycle().take(64 << 10).collect());
    machine
}

#[test]
fn dma_moves_data_when_the_program_waits_for_its_tag() {
    let mut get = transfer(true, 16, 0x1000, 0x20, &format!("lqa $8,0x1000\n{WAIT}lqa $9,0x1000\n"));
    let mut summary = Summary::default();
    get.run_observed(10_000, &mut summary).unwrap();
    assert_eq!(get.register(Reg::new(8)), 0, "the data arrive only when the command is complete");
    assert_eq!(get.register(Reg::new(9)), 0x20212223_24252627_28292a2b_2c2d2e2f);
    assert_eq!(get.register(Reg::new(7)) >> 96, 0x80);
    assert!(summary.stalls["channel"] > 200, "{summary}");
    let mut put = transfer(false, 16 << 10, 0x4000, 0x8000, WAIT);
    put.memory_mut(0x4000..0x8000).fill(0xab);
    let run = put.run(10_000).unwrap();
    assert!(put.main()[0x8000..0xc000].iter().all(|byte| *byte == 0xab));
    assert_eq!((put.main()[0x7fff], put.main()[0xc000]), (0xff, 0));
    // A transfer of 16 KiB takes 2048 clocks, at 8 bytes per clock, plus the latency.
    assert!((2048 + 290..2048 + 400).contains(&run.cycles), "{run:?}");
}

#[test]
fn dma_completes_after_the_stop() {
    let mut put = transfer(false, 16, 0x4000, 0, "");
    put.memory_mut(0x4000..0x4010).fill(0xab);
    put.run(10_000).unwrap();
    assert_eq!(put.main()[..17], [[0xab; 16].as_slice(), &[0x10]].concat());
}

#[test]
fn a_full_queue_waits() {
    let repeat = |times: usize| {
        let again = "wrch $ch21,$2\nil $2,0x40\n".repeat(times);
        let counts = "rchcnt $8,$ch21\n";
        transfer(true, 16 << 10, 0x8000, 0, &format!("il $2,0x40\n{again}{counts}"))
    };
    let (mut few, mut many) = (repeat(15), repeat(17));
    let cycles = |machine: &mut Machine| machine.run(1_000_000).map(|run: Run| run.cycles).unwrap();
    assert!(cycles(&mut few) < 200);
    assert!(cycles(&mut many) > 2 * 2048, "the queue has sixteen places");
    assert_eq!(few.register(Reg::new(8)) >> 96, 0);
}

#[test]
fn values_for_the_mailbox_are_kept() {
    let mut machine = machine("il $3,5\nwrch $ch28,$3\nil $3,-1\nwrch $ch28,$3\nstop 0\n");
    machine.run(100).unwrap();
    assert_eq!(machine.mailbox(), [5, u32::MAX]);
    machine.run(100).unwrap();
    assert_eq!(machine.mailbox(), [5, u32::MAX], "those of the last run");
}

#[test]
fn impossible_uses_of_channels_are_faults() {
    let fault = |mut machine: Machine| match machine.run(10_000).unwrap_err().kind {
        FaultKind::Channel(what) => what,
        other => panic!("{other:?}"),
    };
    for (bytes, local, main, expected) in [
        (24, 0x1000, 0, "a multiple of 16"),
        (0, 0x1000, 0, "a multiple of 16"),
        (16 << 10 | 16, 0x1000, 0, "a multiple of 16"),
        (16, 0x1008, 8, "multiples of 16"),
        (4, 0x1004, 8, "the same last four bits"),
        (2, 0x1001, 1, "multiples of 2"),
        (16, 0x1000, 0x10000, "65536 bytes of main storage"),
        (32, 0x3fff0, 0, "the local store"),
    ] {
        let found = fault(transfer(true, bytes, local, main, WAIT));
        assert!(found.contains(expected), "{bytes} {local:#x} {main:#x}: {found}");
    }
    for (source, expected) in [
        ("rdch $3,$ch24\n", "without a request"),
        ("rdch $3,$ch16\n", "channel 16"),
        ("rdch $3,$ch29\n", "channel 29"),
        ("wrch $ch24,$3\n", "channel 24"),
        ("wrch $ch21,$3\n", "0x0 is no DMA command"),
        ("il $3,3\nwrch $ch23,$3\n", "no condition"),
        ("rchcnt $3,$ch99\n", "channel 99"),
    ] {
        let found = fault(machine(&format!("{source}stop 0\n")));
        assert!(found.contains(expected), "{source}: {found}");
    }
    // A transfer that would overwrite the program is a fault.
    let mut over = transfer(true, 16, 0, 0, WAIT);
    assert!(matches!(over.run(10_000).unwrap_err().kind, FaultKind::SelfModification { written: 0 }));
    for text in ["rdch $3,$24\n", "rdch $3,$ch128\n", "wrch $ch,$3\n", "wrch $3,$ch16\n", "cbd $3,128($4)\n"]
    {
        assert!(assemble("bad.s", text).is_err(), "{text}");
    }
}
