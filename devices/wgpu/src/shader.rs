//! The source of shaders. It consists of the files of `shaders/` and of generated code. The generated code repeats a statement for many
//! names, because WGSL cannot loop over names.

use std::fmt::Write;

use crate::kernel::{Part, Program};

const COMMON: &str = include_str!("../shaders/common.wgsl");
const BYTES: &str = include_str!("../shaders/aes/bytes.wgsl");
const SBOX: &str = include_str!("../shaders/aes/sbox.wgsl");
const INVERSE_SBOX: &str = include_str!("../shaders/aes/inverse_sbox.wgsl");
const COLUMN: &str = include_str!("../shaders/aes/column.wgsl");
const INVERSE_COLUMN: &str = include_str!("../shaders/aes/inverse_column.wgsl");
const PLANES: &str = include_str!("../shaders/planes.wgsl");
const COUNTER: &str = include_str!("../shaders/counter.wgsl");
const GF128: &str = include_str!("../shaders/gf128.wgsl");
const BITSLICE: &str = include_str!("../shaders/bitslice.wgsl");
const TABLE: &str = include_str!("../shaders/table.wgsl");
const GHASH: &str = include_str!("../shaders/ghash.wgsl");
const GHASH_POWERS: &str = include_str!("../shaders/ghash_powers.wgsl");
const GHASH_RUNS: &str = include_str!("../shaders/ghash_runs.wgsl");
const GCM: &str = include_str!("../shaders/gcm.wgsl");
const GCM_PADS: &str = include_str!("../shaders/gcm_pads.wgsl");
const GCM_TAGS: &str = include_str!("../shaders/gcm_tags.wgsl");
const OCB: &str = include_str!("../shaders/ocb.wgsl");
const OCB_ROWS: &str = include_str!("../shaders/ocb_rows.wgsl");
const OCB_LANE: &str = include_str!("../shaders/ocb_lane.wgsl");
const OCB_WIDE: &str = include_str!("../shaders/ocb_wide.wgsl");
const OCB_KEYS: &str = include_str!("../shaders/ocb_keys.wgsl");
const OCB_BEGIN: &str = include_str!("../shaders/ocb_begin.wgsl");
const OCB_HASH: &str = include_str!("../shaders/ocb_hash.wgsl");
const OCB_SUMS: &str = include_str!("../shaders/ocb_sums.wgsl");
const OCB_END: &str = include_str!("../shaders/ocb_end.wgsl");
const OCB_ZERO: &str = include_str!("../shaders/ocb_zero.wgsl");
const TAILS: &str = include_str!("../shaders/tails.wgsl");
const COLUMNS: &str = include_str!("../shaders/columns.wgsl");
const BLOCKS: &str = include_str!("../shaders/blocks.wgsl");
const CHAIN: &str = include_str!("../shaders/chain.wgsl");
const CHAIN_KEYS: &str = include_str!("../shaders/chain_keys.wgsl");
const CHAIN_STEPS: &str = include_str!("../shaders/chain_steps.wgsl");

/// Returns the whole module of a program; its entry point is `main`.
pub(crate) fn source(program: Program) -> String {
    let mut text = String::from(COMMON);
    match program {
        Program::Bitslice { part, wide } if part.sums() => {
            text += &constants(wide, part.decrypts());
            planes(&mut text, part.decrypts());
            text += &cipher(part.decrypts());
            text += OCB;
            text += OCB_ROWS;
            text += &rows_of_ocb(part);
            text += if wide { OCB_WIDE } else { OCB_LANE };
        }
        Program::Bitslice { part, wide } => {
            text += &constants(wide, part.decrypts());
            planes(&mut text, part.decrypts());
            text += &cipher(part.decrypts());
            rows(&mut text, part);
            text += &if part.counts() { start_counters(wide) } else { start_blocks(part) };
            text += &finish(part);
            text += BITSLICE;
        }
        Program::Table { part, wide } => {
            text += &constants(wide, part.decrypts());
            rows(&mut text, part);
            text += TABLE;
        }
        Program::GhashPowers | Program::GhashRuns => {
            writeln!(text, "const RUN = {}u;", crate::kernel::GHASH_RUN).unwrap();
            text += GHASH;
            text += if program == Program::GhashPowers { GHASH_POWERS } else { GHASH_RUNS };
        }
        Program::GcmPads | Program::GcmTags => {
            text += GCM;
            text += if program == Program::GcmPads { GCM_PADS } else { GCM_TAGS };
        }
        Program::OcbKeys => text.extend([OCB, OCB_KEYS]),
        Program::OcbBegin => text.extend([OCB, OCB_BEGIN]),
        Program::OcbHash => text.extend([OCB, OCB_HASH]),
        Program::OcbSums => text += OCB_SUMS,
        Program::OcbEnd => text.extend([GCM, OCB, OCB_END]),
        Program::OcbZero => text += OCB_ZERO,
        Program::Tails => text += TAILS,
        Program::Blocks => {
            columns(&mut text, false);
            text += BLOCKS;
        }
        Program::ChainKeys { decrypts } => {
            columns(&mut text, decrypts);
            text += CHAIN;
            text += CHAIN_KEYS;
        }
        Program::ChainSteps { decrypts } => {
            columns(&mut text, decrypts);
            text += CHAIN;
            text += CHAIN_STEPS;
        }
    }
    text
}

fn constants(wide: bool, decrypts: bool) -> String {
    let lanes = if wide { 32 } else { 1 };
    format!("const LANES = {lanes}u;\nconst DECRYPTS = {}u;\n", u32::from(decrypts))
}

/// The text `item(0), item(1), ...`, with `count` items.
fn list(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(", ")
}

/// The names of the functions of `shaders/aes` for encryption or decryption: the S-box, and a round of one column.
fn circuits_of(decrypts: bool) -> [&'static str; 2] {
    if decrypts { ["inverse_sbox", "inverse_column"] } else { ["sbox", "column"] }
}

/// Appends the code for bit planes, and the functions that [`circuits_of`] names.
fn circuits(text: &mut String, decrypts: bool) {
    text.extend(if decrypts { [BYTES, INVERSE_SBOX, INVERSE_COLUMN] } else { [BYTES, SBOX, COLUMN] });
    *text += PLANES;
    *text += &transpose_bits();
}

/// Appends the code that encrypts or decrypts eight blocks as bit planes.
fn columns(text: &mut String, decrypts: bool) {
    *text += &constants(false, decrypts);
    circuits(text, decrypts);
    *text += COLUMNS;
    let [sbox, column] = circuits_of(decrypts);
    let rows = |item: &dyn Fn(usize) -> String| list(4, item);
    writeln!(
        text,
        "fn substituted(s: Column) -> Column {{ return Column({}); }}\n\
         fn mixed(s: Column) -> Column {{ return {column}({}, 0u); }}",
        rows(&|row| format!("{sbox}(s.row{row})")),
        rows(&|row| format!("s.row{row}"))
    )
    .unwrap();
}

/// Appends the code for 32 blocks as bit planes: the circuits, the type of a state, and the functions that convert blocks to bit planes and
/// back.
fn planes(text: &mut String, decrypts: bool) {
    circuits(text, decrypts);
    writeln!(text, "struct State {{ {} }}", list(16, |p| format!("p{p}: Byte"))).unwrap();
    *text += &between_groups_and_planes();
}

/// Returns the text of a function that transposes the 8 by 8 bits at each byte position of 8 words. Applying the function twice restores
/// the words.
fn transpose_bits() -> String {
    let mut text = String::from("fn transpose_bits(b: Byte) -> Byte {\n");
    let mut names: Vec<String> = (0..8).map(|i| format!("b.b{i}")).collect();
    for (distance, mask) in [(4, "0x0f0f0f0fu"), (2, "0x33333333u"), (1, "0x55555555u")] {
        for i in (0..8).filter(|i| i & distance == 0) {
            let (a, b) = (names[i].clone(), names[i + distance].clone());
            let (low, high) = (format!("t{distance}_{i}"), format!("t{distance}_{}", i + distance));
            writeln!(text, "    let {low} = lower({a}, {b}, {distance}u, {mask});").unwrap();
            writeln!(text, "    let {high} = upper({a}, {b}, {distance}u, {mask});").unwrap();
            (names[i], names[i + distance]) = (low, high);
        }
    }
    writeln!(text, "    return Byte({});\n}}", names.join(", ")).unwrap();
    text
}

/// The vector component that holds column `c` of a block.
fn component(c: usize) -> &'static str {
    ["x", "y", "z", "w"][c]
}

/// Returns the text of functions that move eight groups into a state and out of it. Loops call these functions, and each call rotates the
/// state. Loops keep shaders small and quick to compile.
fn between_groups_and_planes() -> String {
    let mut text = String::new();
    let turned = |word: &dyn Fn(usize) -> String| list(16, |p| format!("pushed(s.p{p}, {})", word(p)));
    writeln!(
        text,
        "fn with_group(s: State, g: Group) -> State {{ return State({}); }}",
        turned(&|p| format!("g.b{}.{}", p % 4, component(p / 4)))
    )
    .unwrap();
    writeln!(text, "fn without_group(s: State) -> State {{ return State({}); }}", turned(&|_| "0u".into()))
        .unwrap();
    let block = |row: usize| format!("vec4({})", list(4, |column| format!("s.p{}.b0", 4 * column + row)));
    writeln!(
        text,
        "fn first_group(s: State) -> Group {{ return transpose_bytes(Group({})); }}",
        list(4, block)
    )
    .unwrap();
    writeln!(
        text,
        "fn transposed(s: State) -> State {{ return State({}); }}",
        list(16, |p| format!("transpose_bits(s.p{p})"))
    )
    .unwrap();
    text
}

/// The code of the rounds. ShiftRows needs no instructions: the code for byte p of the next state uses the names of
/// the bytes that ShiftRows would move there.
fn cipher(decrypts: bool) -> String {
    let [sbox, column] = circuits_of(decrypts);
    let turn = if decrypts { 12 } else { 4 };
    let source = |p: usize| (p + turn * (p % 4)) % 16;
    let mut text = String::new();
    // One function computes a round with MixColumns, and another one computes the last round, which has no MixColumns.
    text += "fn mixed_round(s: State, key: vec4<u32>) -> State {\n";
    for c in 0..4 {
        let bytes = list(4, |row| format!("s.p{}", source(4 * c + row)));
        writeln!(text, "    let c{c} = {column}({bytes}, key.{});", component(c)).unwrap();
    }
    let mixed = |p: usize| format!("c{}.row{}", p / 4, p % 4);
    writeln!(text, "    return State({});\n}}", list(16, mixed)).unwrap();
    writeln!(
        text,
        "fn last_round(s: State) -> State {{ return State({}); }}",
        list(16, |p| format!("{sbox}(s.p{})", source(p)))
    )
    .unwrap();
    text += "fn cipher(start: State, keys: u32) -> State {\n\
             \x20   var s = start;\n\
             \x20   for (var round = 1u; round < launch.rounds; round++) {\n\
             \x20       s = mixed_round(s, schedules[keys + round]);\n\
             \x20   }\n\
             \x20   return last_round(s);\n\
             }\n";
    text
}

/// Appends functions for a row, which is a block of a tile. They return the input of the cipher, the block that is XORed
/// with the output, and the tweak.
fn rows(text: &mut String, part: Part) {
    let (input, output) = match part {
        Part::EcbEncrypt | Part::EcbDecrypt | Part::XtsEncrypt | Part::XtsDecrypt => {
            ("block_at(tile, index)", "vec4(0u)")
        }
        Part::Ctr => ("swap_bytes(advance(number_of(tile.state), index).wzyx)", "block_at(tile, index)"),
        // The first word is the counter: words of a block are little-endian.
        Part::CtrLittle32 => ("vec4(tile.state.x + index, tile.state.yzw)", "block_at(tile, index)"),
        Part::CbcDecrypt => ("block_at(tile, index)", "block_before(tile, index)"),
        Part::CfbDecrypt => ("block_before(tile, index)", "block_at(tile, index)"),
        Part::OcbEncrypt | Part::OcbDecrypt => unreachable!("OCB3 has its own rows, and no T-tables"),
    };
    if part.counts() {
        *text += COUNTER;
    }
    let (first, next) = if part.tweaks() {
        *text += GF128;
        ("first_tweak(tile, lane)", "next_tweak(tweak)")
    } else {
        ("vec4(0u)", "tweak")
    };
    // For GCM, CTR refuses messages with a wrong tag. The values of statuses are in shaders/gcm_tags.wgsl.
    let refused = if part.counts() { "launch.step == 1u && data[tile.extra].x != 1u" } else { "false" };
    writeln!(
        text,
        "fn is_refused(tile: Tile) -> bool {{ return {refused}; }}\n\
         fn row_in(tile: Tile, index: u32) -> vec4<u32> {{ return {input}; }}\n\
         fn row_out(tile: Tile, index: u32) -> vec4<u32> {{ return {output}; }}\n\
         fn row_tweak(tile: Tile, lane: u32) -> vec4<u32> {{ return {first}; }}\n\
         fn row_next(tweak: vec4<u32>) -> vec4<u32> {{ return {next}; }}\n\
         fn zero(tile: Tile, lane: u32) {{\n\
         \x20   for (var index = lane; index < tile.blocks; index += LANES) {{ store(tile, index, vec4(0u)); }}\n\
         }}"
    )
    .unwrap();
}

/// A loop over groups of rows; `row` is the first row of a group.
const GROUPS: &str = "    for (var row = 0u; row < 32u; row += 4u) {\n";

/// Returns the text of a function that builds a state from rows. `row` returns the expression for a row.
fn state_of_rows(head: &str, row: impl Fn(usize) -> String) -> String {
    let rows: String = (0..4).map(|i| format!("        let r{i} = {};\n", row(i))).collect();
    format!(
        "{head}    var s: State;\n{GROUPS}{rows}\
         \x20       s = with_group(s, transpose_bytes(Group(r0, r1, r2, r3)));\n    }}\n\
         \x20   return transposed(s);\n}}\n"
    )
}

/// Returns the text of a function that runs a statement for each block of `state`. `take` returns the statement for a block.
fn rows_of_state(head: &str, take: impl Fn(usize, &str) -> String) -> String {
    let takes: String = (0..4).map(|i| format!("        {}\n", take(i, &format!("g.b{i}")))).collect();
    format!(
        "{head}    var s = transposed(state);\n{GROUPS}        let g = first_group(s);\n{takes}\
         \x20       s = without_group(s);\n    }}\n}}\n"
    )
}

fn start_blocks(part: Part) -> String {
    let mut head = String::from(
        "fn start(tile: Tile, lane: u32, schedule: u32) -> State {\n    let key = schedules[schedule];\n",
    );
    if !part.tweaks() {
        return state_of_rows(&head, |i| format!("row_in(tile, lane + LANES * (row + {i}u)) ^ key"));
    }
    head += "    var tweak = row_tweak(tile, lane);\n";
    state_of_rows(&head, |i| {
        let input = format!("row_in(tile, lane + LANES * (row + {i}u)) ^ key ^ tweak");
        format!("{input};\n        tweak = row_next(tweak)")
    })
}

/// The bit planes of the numbers of the 32 rows. `shaders/planes.wgsl` describes the order of rows in a plane.
const ROW_NUMBER: [&str; 5] = ["0xff00ff00u", "0xffff0000u", "0xaaaaaaaau", "0xccccccccu", "0xf0f0f0f0u"];

/// A function that computes the bit planes of counters, XORed with the first round key. It needs no transposition: the
/// counter of row r is the first counter plus `LANES * r`. This addition adds the five bits of r and propagates the carry
/// through the higher bits.
fn start_counters(wide: bool) -> String {
    let begin = if wide { 5 } else { 0 };
    let mut text = String::from(
        "fn start(tile: Tile, lane: u32, schedule: u32) -> State {\n\
         \x20   let n = advance(number_of(tile.state), lane);\n\
         \x20   let key = number_of(schedules[schedule]);\n\
         \x20   let sum = n ^ key;\n\
         \x20   var carry = 0u;\n",
    );
    for bit in 0..128 {
        let (word, left) = (component(bit / 32), 31 - bit % 32);
        let name = format!("c{}_{}", 15 - bit / 8, bit % 8);
        if bit == 32 {
            text += "    carry &= launch.option;\n";
        }
        let plane = format!("all_bits(sum.{word}, {left}u)");
        let own = format!("all_bits(n.{word}, {left}u)");
        if bit < begin {
            writeln!(text, "    let {name} = {plane};").unwrap();
        } else if bit < begin + 5 {
            let row = ROW_NUMBER[bit - begin];
            writeln!(text, "    let {name} = {plane} ^ {row} ^ carry;").unwrap();
            writeln!(text, "    carry = ({own} & {row}) | (carry & ({own} | {row}));").unwrap();
        } else {
            writeln!(text, "    let {name} = {plane} ^ carry;").unwrap();
            writeln!(text, "    carry &= {own};").unwrap();
        }
    }
    let byte = |p: usize| format!("Byte({})", list(8, |i| format!("c{p}_{i}")));
    writeln!(text, "    return State({});\n}}", list(16, byte)).unwrap();
    text
}

fn finish(part: Part) -> String {
    let mut head = String::from(
        "fn finish(tile: Tile, lane: u32, schedule: u32, state: State) {\n\
         \x20   let key = schedules[schedule + launch.rounds];\n",
    );
    if part.tweaks() {
        head += "    var tweak = row_tweak(tile, lane);\n";
    }
    rows_of_state(&head, |i, block| {
        let index = format!("lane + LANES * (row + {i}u)");
        if part.tweaks() {
            return format!("store(tile, {index}, {block} ^ key ^ tweak);\n        tweak = row_next(tweak);");
        }
        format!("store(tile, {index}, {block} ^ key ^ row_out(tile, {index}));")
    })
}

/// Returns the text of `start` and `finish` of OCB3. The checksum is computed from the plaintext, which is the input of encryption and the
/// output of decryption.
fn rows_of_ocb(part: Part) -> String {
    let encrypts = part == Part::OcbEncrypt;
    let walk = "    var walk = first_row(tile, lane);\n";
    // Only the function that handles the plaintext (`start` or `finish`) declares the sum, adds to it and stores it.
    let only = |is_here: bool, text: String| if is_here { text } else { String::new() };
    let declared = |is_here| only(is_here, "    var sum = vec4(0u);\n".into());
    let added = |is_here, index: &str, block: &str| {
        only(is_here, format!("        sum ^= counted(tile, {index}, {block});\n"))
    };
    let stored = |is_here| only(is_here, "    set_checksum(tile, lane, sum);\n".into());
    let index = |i: usize| format!("lane + LANES * (row + {i}u)");

    let mut text = String::from("fn start(tile: Tile, lane: u32, schedule: u32) -> State {\n");
    text += "    let key = schedules[schedule];\n";
    text += &[walk, &declared(encrypts), "    var s: State;\n", GROUPS].concat();
    for i in 0..4 {
        text += &format!("        let p{i} = row_at(tile, {});\n", index(i));
        text += &added(encrypts, &index(i), &format!("p{i}"));
        text += &format!("        let r{i} = p{i} ^ key ^ walk.offset;\n        walk = next_row(walk);\n");
    }
    text += "        s = with_group(s, transpose_bytes(Group(r0, r1, r2, r3)));\n    }\n";
    text += &[&stored(encrypts), "    return transposed(s);\n}\n"].concat();

    text += "fn finish(tile: Tile, lane: u32, schedule: u32, state: State) {\n";
    text += "    let key = schedules[schedule + launch.rounds];\n    var s = transposed(state);\n";
    text += &[walk, &declared(!encrypts), GROUPS, "        let g = first_group(s);\n"].concat();
    for i in 0..4 {
        text += &format!("        let r{i} = g.b{i} ^ key ^ walk.offset;\n        walk = next_row(walk);\n");
        text += &added(!encrypts, &index(i), &format!("r{i}"));
        text += &format!("        store(tile, {}, r{i});\n", index(i));
    }
    text += "        s = without_group(s);\n    }\n";
    text += &[&stored(!encrypts), "}\n"].concat();
    text
}
