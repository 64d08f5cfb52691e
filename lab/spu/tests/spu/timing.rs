//! Tests each rule of the cycle model with a program of a few instructions.

use lockstep_spu::asm::assemble;
use lockstep_spu::isa::Reg;
use lockstep_spu::sim::{FaultKind, Machine, Run};

fn run(source: &str) -> Run {
    let image = assemble("micro.s", source).unwrap_or_else(|error| panic!("{error}"));
    let mut machine = Machine::new();
    machine.load(&image);
    machine.run(10_000).unwrap_or_else(|fault| panic!("{fault}"))
}

/// Cycles from the issue of the first instruction to the issue of the stop, inclusive.
fn cycles(source: &str) -> u64 {
    run(source).cycles
}

/// Cycles between the issue of `producer` and the issue of an instruction that reads $3. Each is in its own pair.
fn latency(producer: &str) -> u64 {
    // The pairs are the producer with a no-operation, and then the consumer. The even instruction comes first.
    let even = cycles(&format!(".align 3\n {producer}\n nop\n.align 3\n ai $9,$3,0\n lnop\n stop 0"));
    // The stop issues one cycle after the consumer, and the producer issues in the first cycle.
    even - 2 - 1 + 1
}

#[test]
fn latencies() {
    for producer in
        ["a $3,$4,$5", "ai $3,$4,1", "xor $3,$4,$5", "il $3,1", "ceqbi $3,$4,1", "selb $3,$4,$5,$6"]
    {
        assert_eq!(latency(producer), 2, "{producer}");
    }
    for producer in ["roti $3,$4,8", "shli $3,$4,1", "rotmi $3,$4,-1", "rotmai $3,$4,-1"] {
        assert_eq!(latency(producer), 4, "{producer}");
    }
    for producer in ["shufb $3,$4,$5,$6", "rotqbyi $3,$4,1", "gbb $3,$4", "fsmb $3,$4", "fsmbi $3,5"] {
        assert_eq!(latency(producer), 4, "{producer}");
    }
    for producer in ["lqd $3,0($4)", "lqx $3,$4,$5", "lqa $3,64", "lqr $3,64"] {
        assert_eq!(latency(producer), 6, "{producer}");
    }
}

#[test]
fn pairs() {
    // An aligned pair of an even and an odd instruction issues in one cycle, and the stop issues in the next cycle.
    assert_eq!(cycles("xor $3,$4,$5\n rotqbyi $6,$7,1\n stop 0"), 2);
    // If the odd instruction comes first, the pair takes two cycles.
    assert_eq!(cycles("rotqbyi $6,$7,1\n xor $3,$4,$5\n stop 0"), 3);
    // Two even instructions take two cycles, and so do two odd instructions.
    assert_eq!(cycles("xor $3,$4,$5\n xor $6,$4,$5\n stop 0"), 3);
    assert_eq!(cycles("rotqbyi $6,$7,1\n rotqbyi $5,$7,1\n stop 0"), 3);
    // The second instruction needs the result of the first instruction, so it issues when this result is ready.
    assert_eq!(cycles("xor $3,$4,$5\n rotqbyi $6,$3,1\n stop 0"), 4);
    // The even instruction is the second of its group, and the odd instruction is the first of the next group. So they do not issue
    // together.
    assert_eq!(cycles("lnop\n xor $3,$4,$5\n rotqbyi $6,$7,1\n nop\n stop 0"), 5);
}

#[test]
fn a_stalled_first_blocks_the_second() {
    // $3 is ready at 1 + 4. The pair waits for it, and then both instructions issue.
    assert_eq!(cycles("nop\n rotqbyi $3,$4,1\n xor $5,$3,$3\n rotqbyi $6,$7,1\n stop 0"), 6);
    // The first instruction of the pair issues. The second instruction waits and issues alone.
    assert_eq!(cycles("nop\n rotqbyi $3,$4,1\n xor $5,$4,$4\n rotqbyi $6,$3,1\n stop 0"), 6);
}

#[test]
fn branches() {
    // A branch that is not taken costs an issue slot.
    assert_eq!(cycles("nop\n brnz $3,away\n stop 0\naway: stop 1"), 2);
    // A taken branch without a hint loses 18 cycles, whether its target is an even or an odd word.
    assert_eq!(cycles("nop\n br away\n.align 3\n stop 1\n lnop\naway: stop 0"), 1 + 18 + 1);
    assert_eq!(cycles("nop\n br away\n.align 3\n stop 1\naway: stop 0"), 1 + 18 + 1);
}

/// Returns the cycles of a program: a hint, `groups` groups of `nop` and `lnop`, and the branch in a separate group.
fn hinted(groups: usize, target: &str) -> u64 {
    let filler = "nop\n lnop\n".repeat(groups);
    cycles(&format!(
        "nop\n hbrr branch,{target}\n{filler} nop\nbranch: br away\n.align 3\nbelow: stop 1\n lnop\naway: stop 0"
    ))
}

#[test]
fn hints() {
    // The hint is far enough from the branch: no cycle is lost.
    assert_eq!(hinted(20, "away"), 1 + 20 + 1 + 1);
    // The branch waits until 15 cycles after the hint.
    assert_eq!(hinted(10, "away"), 1 + 15 + 1);
    assert_eq!(hinted(14, "away"), 1 + 15 + 1);
    assert_eq!(hinted(15, "away"), 1 + 16 + 1);
    // The hint is too close to the branch and has no effect.
    assert_eq!(hinted(2, "away"), 1 + 2 + 1 + 18 + 1);
    // Eight instructions between the hint and the branch are enough; seven are not.
    let between = |count: usize| {
        let filler: String = (0..count).map(|i| if i % 2 == 0 { " nop\n" } else { " lnop\n" }).collect();
        let pad = if count.is_multiple_of(2) { "" } else { " nop\n" };
        cycles(&format!("{pad} hbrr branch,away\n{filler}branch: br away\n stop 1\naway: stop 0"))
    };
    assert_eq!(between(8), 1 + 15 + 1);
    assert!(between(7) > 18 + 4);
    // A hint with the wrong target has the same effect as no hint.
    assert_eq!(hinted(20, "below"), 1 + 20 + 1 + 18 + 1);
}

#[test]
fn a_hinted_branch_that_is_not_taken_costs_the_penalty() {
    let filler = "nop\n lnop\n".repeat(20);
    let source = format!("nop\n hbrr branch,away\n{filler} nop\nbranch: brnz $3,away\n stop 0\naway: stop 1");
    assert_eq!(cycles(&source), 1 + 20 + 1 + 18 + 1);
}

#[test]
fn a_hint_stays_for_all_iterations() {
    let filler = "nop\n lnop\n".repeat(20);
    let source = format!(
        "il $3,3\n hbrr branch,loop\n{filler}loop: ai $3,$3,-1\n lnop\n nop\nbranch: brnz $3,loop\n stop 0"
    );
    // Three iterations: the branch waits for the sum. The last iteration continues at another address than the target
    // of the hint.
    assert_eq!(cycles(&source), 1 + 20 + 3 * 3 + 18 + 1);
}

#[test]
fn a_target_at_an_odd_word_is_half_a_group() {
    let even = cycles("nop\n br at\n stop 1\n lnop\nat: xor $3,$4,$4\n rotqbyi $5,$6,1\n stop 0");
    let odd = cycles("nop\n br at\n.align 3\n nop\nat: rotqbyi $5,$6,1\n xor $3,$4,$4\n lnop\n stop 0");
    assert_eq!((even, odd), (1 + 18 + 1 + 1, 1 + 18 + 1 + 1 + 1));
}

fn fault(source: &str, budget: u64) -> String {
    let mut machine = Machine::new();
    machine.load(&assemble("bad.s", source).unwrap());
    machine.run(budget).unwrap_err().to_string()
}

#[test]
fn bad_programs_stop_with_a_message() {
    assert!(fault("nop\n lnop\n", 100).contains("0x00008: the program ran or branched outside"));
    assert!(fault("il $3,-16\n bi $3", 100).contains("0x3fff0: the program ran or branched outside"));
    assert!(fault("l: br l", 1000).contains("still running after 1000 cycles"));
    assert!(fault("nop\n .long 0xffffffff", 100).contains("0x00004: 0xffffffff is no instruction"));
    assert!(fault("nop\n stqa $3,0\n stop 0", 100).contains("0x00004: a store to 0x00000 overwrites code"));
    // A store must not overwrite code that has not been executed yet, nor words that were written as data and have been executed.
    let later = "nop\n stqa $3,later\n.align 4\nlater: stop 0";
    assert!(fault(later, 100).contains("0x00004: a store to 0x00010 overwrites code"));
    let data = " br data\n.align 4\ndata: .long 0x40200000\n .long 0x00200000\n stqa $3,data\n stop 0";
    assert!(fault(data, 100).contains("0x00018: a store to 0x00010 overwrites code"));
    // A refused store has no effect.
    let mut machine = Machine::new();
    machine.load(&assemble("bad.s", "nop\n stqa $3,0\n stop 0").unwrap());
    machine.set_register(Reg::new(3), u128::MAX);
    let before = machine.memory(0..16).to_vec();
    machine.run(100).unwrap_err();
    assert_eq!(machine.memory(0..16), before);
    let mut machine = Machine::new();
    machine.load(&assemble("x.s", "l: br l").unwrap());
    assert_eq!(machine.run(5).unwrap_err().kind, FaultKind::Budget(5));
}

#[test]
fn data_among_the_code_may_be_written() {
    let source = "nop\n stqa $3,data\n lqa $4,data\n stop 0\n.align 4\ndata: .long 1,2,3,4\n";
    let mut machine = Machine::new();
    machine.load(&assemble("data.s", source).unwrap());
    machine.set_register(Reg::new(3), 77);
    machine.run(100).unwrap();
    assert_eq!(machine.register(Reg::new(4)), 77);
}

#[test]
fn the_local_store_content_is_executed() {
    let program = |value: i32| assemble("x.s", &format!("il $3,{value}\n stop 0")).unwrap();
    let mut machine = Machine::new();
    let mut run = |change: &dyn Fn(&mut Machine)| {
        change(&mut machine);
        machine.run(100).map(|_| machine.register(Reg::new(3)) as u32).map_err(|fault| fault.kind)
    };
    assert_eq!(run(&|machine| machine.load(&program(1))), Ok(1));
    assert_eq!(run(&|machine| machine.load(&program(2))), Ok(2));
    // The code is overwritten from outside, and then by another load of the same program.
    let word = program(3).word(0).unwrap();
    assert_eq!(run(&|machine| machine.memory_mut(0..4).copy_from_slice(&word.to_be_bytes())), Ok(3));
    assert_eq!(run(&|machine| machine.load(&program(2))), Ok(2));
    assert_eq!(run(&|machine| machine.clear()), Err(FaultKind::OutsideCode));
}

#[test]
fn the_local_store_wraps_and_is_aligned() {
    let source = "ila $3,0x3fff8\n lnop\n stqd $4,32($3)\n lqa $5,16\n lqd $6,3($7)\n stop 0"
        .replace("3($7)", "0($7)");
    let mut machine = Machine::new();
    machine.load(&assemble("wrap.s", &format!("br go\n.space 92\ngo: {source}")).unwrap());
    machine.set_register(Reg::new(4), 0x1122);
    machine.run(1000).unwrap();
    assert_eq!(machine.register(Reg::new(5)), 0x1122, "0x3fff8 + 32 is 0x18, so the quadword at 0x10");
}
