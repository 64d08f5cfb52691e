//! Tests of texture units, the VPM and DMA: their reads and writes, the faults that they report, and their clocks.

use lockstep_qpu::asm::assemble;
use lockstep_qpu::sim::{Fault, FaultKind, Leftovers, Machine, Program, Run, Vector};

const END: &str = "\nnop; thrend\nnop\nnop\n";

/// Clocks of the three instructions that end a program.
const END_CLOCKS: u64 = 12;

/// The state after a run.
struct After {
    memory: Vec<u32>,
    run: Run,
    /// r0 to r3 of QPU 0.
    accumulators: [Vector; 4],
}

/// Runs a program on QPUs whose uniforms start at 0. The memory has the words 0, 1, 2 and so on.
fn try_run(qpus: usize, source: &str) -> Result<After, Fault> {
    let program = assemble(&format!("{source}{END}")).unwrap_or_else(|error| panic!("{source}: {error}"));
    let program = Program::new(&program.instructions);
    let mut memory: Vec<u8> = (0..2048u32).flat_map(u32::to_le_bytes).collect();
    let mut machine = Machine::new(&program, &vec![0; qpus]);
    let run = machine.run(&mut memory, 1_000_000)?;
    let words = memory.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
    let accumulators = std::array::from_fn(|number| *machine.accumulator(0, number as u8));
    Ok(After { memory: words.collect(), run, accumulators })
}

fn run(source: &str) -> After {
    try_run(1, source).unwrap_or_else(|fault| panic!("{source}: {fault}"))
}

fn fault(source: &str) -> FaultKind {
    try_run(1, source).err().unwrap_or_else(|| panic!("no fault: {source}")).kind
}

fn elements(of: impl Fn(u32) -> u32) -> Vector {
    std::array::from_fn(|index| of(index as u32))
}

/// Clocks of a program without the instructions that end it.
fn clocks(qpus: usize, source: &str) -> u64 {
    try_run(qpus, source).unwrap_or_else(|fault| panic!("{source}: {fault}")).run.clocks - END_CLOCKS
}

#[test]
fn texture_units_load_words_in_order() {
    let after =
        run("shl r0, elem_num, 3\nldi r1, 512\nadd r1, r1, r0\nmov t0s, r0\nmov t0s, r1\nmov t1s, r1\n\
        nop; ldtmu0\nmov r2, r4; ldtmu0\nmov r3, r4; ldtmu1\nmov r1, r4");
    assert_eq!(after.accumulators[2], elements(|index| 2 * index));
    assert_eq!(after.accumulators[3], elements(|index| 128 + 2 * index));
    assert_eq!(after.accumulators[1], after.accumulators[3]);
    let counters = after.run.counters;
    // Each of the two units has its own cache. The requests are for 128 bytes, and both units share the level 2 cache.
    assert_eq!((counters.texture_quads, counters.texture_misses, counters.l2_misses), (12, 6, 4));
    assert_eq!(counters.l2_hits, 2);
}

#[test]
fn a_request_occupies_its_unit_for_16_clocks_and_takes_66() {
    // The request starts at clock 4, which is after one instruction.
    assert_eq!(clocks(1, "mov r0, 0\nmov t0s, r0\nnop; ldtmu0"), 4 + 66 + 4);
    // If the result is loaded after the unit has delivered it, the load does not wait.
    let late =
        |nops: usize| clocks(1, &format!("mov r0, 0\nmov t0s, r0\n{}nop; ldtmu0", "nop\n".repeat(nops)));
    assert_eq!((late(14), late(15), late(16), late(20)), (74, 74, 76, 92));
    // The second request of a unit starts 16 clocks after the first. A request of the other unit does not wait.
    let two = |unit: u8| {
        clocks(1, &format!("mov r0, 0\nmov t0s, r0\nmov t{unit}s, r0\nnop; ldtmu0\nnop; ldtmu{unit}"))
    };
    assert_eq!((two(0), two(1)), (4 + 32 + 50 + 4, 8 + 66 + 4));
    // QPUs 0 and 1 share a unit. For QPUs 2 and 3, unit 0 is the other unit. QPU 4 is in another slice.
    let source = "mov r0, 0\nmov t0s, r0\nnop; ldtmu0";
    assert_eq!([1, 2, 4, 12].map(|qpus| clocks(qpus, source)), [74, 90, 90, 90]);
    // Without the exchange, all four QPUs share the unit.
    let source = "mov tmurs, 1\nmov r0, 0\nnop\nnop\nmov t0s, r0\nnop; ldtmu0";
    assert_eq!([1, 4].map(|qpus| clocks(qpus, source)), [16 + 70, 16 + 70 + 48]);
}

#[test]
fn texture_units_refuse_a_fifth_request_and_wrong_addresses() {
    let requests = |count: usize| "mov r0, 0\n".to_owned() + &"mov t0s, r0\n".repeat(count);
    assert_eq!(fault(&requests(5)), FaultKind::TooManyRequests);
    // The result of a request that is not loaded is lost, without a fault.
    assert_eq!(run(&requests(4)).run.counters.texture_quads, 16);
    assert_eq!(fault("mov r0, 0\nmov t0s, r0\nnop; ldtmu1"), FaultKind::NoRequest);
    assert_eq!(fault("ldi r0, 8190\nmov t0s, r0"), FaultKind::Memory(8190));
    assert_eq!(fault("ldi r0, 8192\nmov t0s, r0"), FaultKind::Memory(8192));
    assert_eq!(fault("mov t0s, -4"), FaultKind::Memory(0xffff_fffc));
}

#[test]
fn the_cache_of_a_texture_unit_is_direct_mapped() {
    // The lines at addresses 0 and 4096 replace each other in the cache.
    let source = "ldi r0, 0\nldi r1, 4096\nldi r2, 64\nmov t0s, r0\nmov t0s, r2\nmov t0s, r0\nnop; ldtmu0\nnop; ldtmu0\n\
        nop; ldtmu0\nmov t0s, r1\nmov t0s, r0\nmov t0s, r2\nnop; ldtmu0\nnop; ldtmu0\nnop; ldtmu0";
    assert_eq!(run(source).run.counters.texture_misses, 4);
}

/// The setups of the VPM for vectors of words: horizontal vectors from row 0, and vertical vectors from column 0.
const HORIZONTAL: u32 = 0x1a00;
const VERTICAL: u32 = 0x1200;

fn write_setup(word: u32) -> String {
    format!("ldi vw_setup, {word:#x}\n")
}

/// Sets up reads of a number of vectors, and waits until the reads are allowed.
fn read_setup(count: u32, word: u32) -> String {
    format!("ldi vr_setup, {:#x}\nnop\nnop\nnop\n", count << 20 | word)
}

#[test]
fn vectors_of_words_are_written_as_rows_and_columns() {
    let rows = "mov vpm, elem_num\nldi r0, 16\nadd vpm, elem_num, r0\n";
    let after =
        run(&format!("{}{rows}{}mov r1, vpm\nmov r2, vpm", write_setup(HORIZONTAL), read_setup(2, VERTICAL)));
    assert_eq!(after.accumulators[1][..3], [0, 16, 0]);
    assert_eq!(after.accumulators[2][..3], [1, 17, 0]);
    // The vector is column 3 of rows 16 to 31. The upper bits of the address are the number of the row.
    let after = run(&format!(
        "{}mov vpm, elem_num\n{}mov r1, vpm\nmov r2, vpm",
        write_setup(VERTICAL | 0x13),
        read_setup(2, HORIZONTAL | 0x10)
    ));
    assert_eq!(after.accumulators[1], [0; 16]);
    assert_eq!(after.accumulators[2], elements(|index| if index == 3 { 1 } else { 0 }));
}

#[test]
fn strides_are_added_after_each_vector() {
    let source = format!(
        "{}mov vpm, 1\nmov vpm, 2\nmov vpm, 3\n{}mov r1, vpm\nmov r2, vpm\nmov r3, vpm",
        write_setup(0x3a00),
        read_setup(3, 0x2a03)
    );
    // Vectors are written to rows 0, 3 and 6, and read from rows 3, 5 and 7.
    let after = run(&source);
    assert_eq!([1, 2, 3].map(|number: usize| after.accumulators[number][0]), [2, 0, 0]);
}

#[test]
fn bytes_and_halves_of_the_vpm() {
    // Row 1 gets the bytes 0 to 63. A load reads the words 0x03020100 and so on from the memory of the uniforms.
    let row = "mov r1, elem_num; mov r2, elem_num\nshl r1, r1, 2\nldi r0, 0x010101\nnop; mul24 r2, r0, r1\nshl r3, r1, 15\n\
        shl r3, r3, 9\nadd r2, r2, r3\nldi r0, 0x03020100\nadd vpm, r0, r2\n";
    let read = |word: u32| {
        let source = format!("{}{row}{}mov r1, vpm", write_setup(HORIZONTAL | 1), read_setup(1, word));
        run(&source).accumulators[1]
    };
    assert_eq!(read(HORIZONTAL | 1)[..2], [0x0302_0100, 0x0706_0504]);
    // Elements of 8 bits. Packed elements are bytes 16 to 31 of row 1, and laned elements are byte 1 of each word.
    assert_eq!(read(0x1800 | 1 << 2 | 1), elements(|index| 16 + index));
    assert_eq!(read(0x1c00 | 1 << 2 | 1), elements(|index| 4 * index + 1));
    // Reads with the packed and with the laned setup for elements of 16 bits.
    let half = |index: u32| (2 * index) | ((2 * index + 1) << 8);
    assert_eq!(read(0x1900 | 1 << 1 | 1), elements(|index| half(16 + index)));
    assert_eq!(read(0x1d00 | 1 << 1), elements(|index| half(2 * index)));
    // Writes of bytes do not change the other bytes of a word.
    let source = format!(
        "{}mov vpm, -1\n{}mov vpm, elem_num\n{}mov r1, vpm",
        write_setup(HORIZONTAL),
        write_setup(0x1800 | 2),
        read_setup(1, HORIZONTAL)
    );
    let after = run(&source);
    assert_eq!(after.accumulators[1][7..10], [0xffff_ffff, 0x0302_0100, 0x0706_0504]);
}

#[test]
fn the_vpm_refuses_reads_without_a_setup_and_two_setups() {
    assert_eq!(fault("ldi vr_setup, 0x101a00\nnop\nnop\nnop\nmov r0, vpm\nmov r0, vpm"), FaultKind::NoSetup);
    assert_eq!(fault("ldi vr_setup, 0x101a00\nldi vr_setup, 0x101a00"), FaultKind::Setup(0x10_1a00));
    assert_eq!(fault("ldi vr_setup, 0xf0000000"), FaultKind::Setup(0xf000_0000));
    assert_eq!(fault("ldi vw_setup, 0x40000000"), FaultKind::Setup(0x4000_0000));
}

/// The instructions that load rows of 16 words to row 0 of the VPM, with 64 bytes from one row of memory to the next. `rows` is from 1 to
/// 15.
fn load(rows: u32) -> String {
    format!("ldi vr_setup, {:#x}\nldi vr_addr, 0\n", 0x8300_1000 | rows << 16)
}

/// The instructions that store rows of 16 words from row 0 of the VPM.
fn store(rows: u32, to: u32) -> String {
    format!("ldi vw_setup, {:#x}\nldi vw_addr, {to}\n", 0x8010_4000 | rows << 23)
}

#[test]
fn blocks_are_loaded_and_stored() {
    let after = run(&format!("{}mov -, vr_wait\n{}mov -, vw_wait", load(4), store(3, 4096)));
    assert_eq!(after.memory[1024..1072], (0..48).collect::<Vec<u32>>());
    assert_eq!(after.memory[1072], 1072);
    // A load of parts of rows: 2 rows of 3 words go to row 5, column 4, with 128 bytes from one row of memory to the next.
    let part = format!(
        "ldi vr_setup, {:#x}\nmov vr_addr, 8\nmov -, vr_wait\n{}mov r0, vpm\nmov r1, vpm\nmov r2, vpm",
        0x8000_1000u32 | 4 << 24 | 3 << 20 | 2 << 16 | 5 << 4 | 4,
        read_setup(3, HORIZONTAL | 5),
    );
    let after = run(&part);
    assert_eq!(after.accumulators[0], elements(|index| if (4..7).contains(&index) { index - 2 } else { 0 }));
    assert_eq!(after.accumulators[1], elements(|index| if (4..7).contains(&index) { index + 30 } else { 0 }));
    assert_eq!(after.accumulators[2], [0; 16]);
    // A store that leaves 32 bytes of memory unchanged between two rows.
    let after = run(&format!(
        "{}mov -, vr_wait\nldi vw_setup, 0xc0000020\n{}mov -, vw_wait",
        load(2),
        store(2, 4096)
    ));
    assert_eq!(after.memory[1024..1040], (0..16).collect::<Vec<u32>>());
    assert_eq!(after.memory[1040..1048], (1040..1048).collect::<Vec<u32>>());
    assert_eq!(after.memory[1048..1064], (16..32).collect::<Vec<u32>>());
}

#[test]
fn leftovers_of_programs_are_counted() {
    let left = |qpus, source: &str| try_run(qpus, source).unwrap().run.leftovers;
    let none = Leftovers::default();
    let request = "mov t0s, 0\nmov t1s, 0\nmov t1s, 0\nnop; ldtmu1\n";
    assert_eq!(left(1, request), Leftovers { requests: 2, ..none });
    assert_eq!(left(3, request), Leftovers { requests: 6, ..none });
    assert_eq!(left(1, &format!("{request}nop; ldtmu0\nnop; ldtmu1")), none);
    let read = read_setup(3, HORIZONTAL | 5);
    assert_eq!(left(1, &format!("{read}mov r0, vpm")), Leftovers { vpm_vectors: 2, ..none });
    assert_eq!(left(1, &load(4)), Leftovers { transfers: 1, ..none });
    let other_row = "ldi vw_setup, 0x80904400\nldi vw_addr, 4096\n";
    assert_eq!(left(1, &format!("{}{other_row}", load(4))), Leftovers { transfers: 2, ..none });
    // In the first program, the interrupt comes before the end of the store. In the second program, it comes after the end.
    let late = format!("{}mov irq, 1\nmov -, vw_wait", store(3, 4096));
    assert_eq!(left(1, &late), Leftovers { late_store: true, ..none });
    assert_eq!(left(1, &format!("{}mov -, vw_wait\nmov irq, 1", store(3, 4096))), none);
    assert_eq!(left(1, "srel -, 3\nsrel -, 4\nsrel -, 4\nsacq -, 4"), Leftovers { semaphores: 2, ..none });
    assert_eq!(left(1, "mov -, mutex"), Leftovers { mutex: true, ..none });
    assert_eq!(left(1, "mov -, mutex\nmov mutex, 0"), none);
}

#[test]
fn columns_are_loaded_and_stored() {
    // 16 rows of one word become column 3 with a pitch of one row, and are stored as one word of 16 rows.
    let column = "ldi vr_setup, 0x90000004\nldi vr_setup, 0x80101803\nmov vr_addr, 0\nmov -, vr_wait\n";
    let back = "ldi vw_setup, 0xc0010000\nldi vw_setup, 0x88014018\nldi vw_addr, 4096\nmov -, vw_wait";
    let after = run(&format!("{column}{}mov r0, vpm\n{back}", read_setup(1, VERTICAL | 3)));
    assert_eq!(after.accumulators[0], elements(|index| index));
    assert_eq!(after.memory[1024..1040], (0..16).collect::<Vec<u32>>());
    // A vertical store of one column.
    let after = run(&format!("{column}ldi vw_setup, 0x80900018\nldi vw_addr, 4096\nmov -, vw_wait"));
    assert_eq!(after.memory[1024..1040], (0..16).collect::<Vec<u32>>());
    assert_eq!(fault("ldi vw_setup, 0x81100018"), FaultKind::Setup(0x8110_0018));
}

#[test]
fn clocks_of_transfers() {
    // The time is the sum of the clocks of the instructions before the transfer, the clocks of the transfer, and the clock of the
    // instruction that waits.
    let loads = |rows: u32| clocks(1, &format!("{}mov -, vr_wait", load(rows)));
    assert_eq!((loads(1), loads(4)), (4 + 135 + 15 + 4, 4 + 135 + 60 + 4));
    let stores = |rows: u32| clocks(1, &format!("{}mov -, vw_wait", store(rows, 4096)));
    assert_eq!((stores(1), stores(4)), (4 + 141 + 15 + 4, 4 + 141 + 60 + 4));
    // A vector is stored as a column of single words, as in the thesis.
    let vector = "ldi vw_setup, 0x88014000\nldi vw_addr, 4096\nmov -, vw_wait";
    assert_eq!(clocks(1, vector), 4 + 157 + 4);
    // One engine performs the stores of all QPUs, one after the other. Another engine performs the loads.
    assert_eq!(clocks(12, vector), 4 + 12 * 157 + 4);
    let both = format!(
        "{}{}mov -, vr_wait\nmov -, vw_wait",
        load(1),
        store(1, 4096).replace("0x80904000", "0x80904800")
    );
    assert_eq!(clocks(1, &both), 12 + 156 + 4);
    let busy = run(&format!("{}mov r0, vr_busy\nmov r1, vw_busy\nmov -, vr_wait\nmov r2, vr_busy", load(1)));
    assert_eq!([0, 1, 2].map(|number: usize| busy.accumulators[number][9]), [1, 0, 0]);
    assert_eq!(busy.run.counters.load_stall_clocks, 150 - 12);
}

#[test]
fn a_transfer_is_not_disturbed() {
    let read = format!("{}ldi vr_setup, 0x101a00\nnop\nnop\nnop\nmov r0, vpm", load(1));
    assert_eq!(fault(&read), FaultKind::VpmBusy { row: 0 });
    assert_eq!(
        fault(&format!("{}{}mov vpm, 0", store(1, 4096), write_setup(HORIZONTAL))),
        FaultKind::VpmBusy { row: 0 }
    );
    assert_eq!(fault(&format!("{}ldi vr_setup, 0x90000004", load(1))), FaultKind::DmaBusy);
    // The store reads a row that is being loaded.
    assert_eq!(fault(&format!("{}{}", load(1), store(1, 4096))), FaultKind::VpmBusy { row: 0 });
    // Another row may be written.
    run(&format!("{}{}mov vpm, 0", store(1, 4096), write_setup(HORIZONTAL | 1)));
    assert_eq!(fault(&format!("{}mov vr_addr, 0", load(1))), FaultKind::DmaBusy);
    assert_eq!(fault(&format!("{}mov vw_addr, 0", store(1, 4096))), FaultKind::DmaBusy);
}

#[test]
fn transfers_outside_of_the_vpm_or_of_memory_are_refused() {
    // These transfers exceed the VPM: loads of a row from column 3 and of four rows from row 62, and a store of row
    // 64.
    let load = |setup: u32| fault(&format!("ldi vr_setup, {setup:#x}\nldi vr_addr, 0"));
    assert_eq!(load(0x8301_1003), FaultKind::OutsideVpm { row: 0, column: 16 });
    assert_eq!(load(0x8304_1000 | 62 << 4), FaultKind::OutsideVpm { row: 64, column: 0 });
    assert_eq!(
        fault("ldi vw_setup, 0x80906000\nldi vw_addr, 0"),
        FaultKind::OutsideVpm { row: 64, column: 0 }
    );
    assert_eq!(fault("ldi vr_setup, 0x83011000\nldi vr_addr, 8132"), FaultKind::Memory(8192));
    assert_eq!(fault("ldi vw_setup, 0x80904000\nldi vw_addr, 8132"), FaultKind::Memory(8192));
    assert_eq!(fault("ldi vw_setup, 0x80904000\nldi vw_addr, 2"), FaultKind::Memory(2));
}

#[test]
fn the_mutex_is_held_by_one_qpu() {
    // Each QPU adds one to a word in memory, through the VPM and DMA.
    let source = "ldi vr_setup, 0x80111000\nldi vw_setup, 0x80814000\nmov -, mutex\nmov vr_addr, 0\nmov -, vr_wait\n\
        ldi vr_setup, 0x101a00\nldi vw_setup, 0x1a00\nnop\nnop\nadd vpm, vpm, 1\nmov vw_addr, 0\nmov -, vw_wait\nmov mutex, 0";
    let after = try_run(12, source).unwrap();
    assert_eq!(after.memory[0], 12);
    assert!(after.run.counters.synchronization_clocks > 66 * 290);
}
