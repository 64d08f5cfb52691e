//! The shaders' text: files of `shaders/`, and what is unrolled because no language has loops over names.

use std::fmt::Write;

use crate::kernel::{Part, Program};

const COMMON: &str = include_str!("../shaders/common.wgsl");
const CIRCUITS: &str = include_str!("../shaders/aes.wgsl");
const PLANES: &str = include_str!("../shaders/planes.wgsl");
const COUNTER: &str = include_str!("../shaders/counter.wgsl");
const GF128: &str = include_str!("../shaders/gf128.wgsl");
const BITSLICE: &str = include_str!("../shaders/bitslice.wgsl");
const TABLE: &str = include_str!("../shaders/table.wgsl");
const GHASH: &str = include_str!("../shaders/ghash.wgsl");
const GHASH_POWERS: &str = include_str!("../shaders/ghash_powers.wgsl");
const GHASH_RUNS: &str = include_str!("../shaders/ghash_runs.wgsl");
const CHAIN: &str = include_str!("../shaders/chain.wgsl");
const CHAIN_KEYS: &str = include_str!("../shaders/chain_keys.wgsl");
const CHAIN_STEPS: &str = include_str!("../shaders/chain_steps.wgsl");

/// The whole module of a program; its entry point is `main`.
pub(crate) fn source(program: Program) -> String {
    let mut text = String::from(COMMON);
    match program {
        Program::Bitslice { part, wide } => {
            text += &constants(wide, part.decrypts());
            planes(&mut text, part.decrypts());
            text += &cipher(part.decrypts(), Keys::Words);
            rows(&mut text, part);
            text += &if part.counts() { start_counters(wide) } else { start_blocks(part) };
            text += &finish(part);
            text += BITSLICE;
        }
        Program::Table { part, wide } => {
            text += &constants(wide, part.decrypts());
            rows(&mut text, part);
            text += &table(part.decrypts());
            text += TABLE;
        }
        Program::GhashPowers | Program::GhashRuns => {
            writeln!(text, "const RUN = {}u;", crate::kernel::GHASH_RUN).unwrap();
            text += GHASH;
            text += if program == Program::GhashPowers { GHASH_POWERS } else { GHASH_RUNS };
        }
        Program::ChainKeys { decrypts } => {
            text += &constants(false, decrypts);
            planes(&mut text, decrypts);
            text += CHAIN;
            text += &key_planes();
            text += CHAIN_KEYS;
        }
        Program::ChainSteps { decrypts } => {
            text += &constants(false, decrypts);
            planes(&mut text, decrypts);
            text += CHAIN;
            text += &cipher(decrypts, Keys::Planes);
            text += &block_planes();
            text += CHAIN_STEPS;
        }
    }
    text
}

fn constants(wide: bool, decrypts: bool) -> String {
    let lanes = if wide { 32 } else { 1 };
    format!("const LANES = {lanes}u;\nconst DECRYPTS = {}u;\n", u32::from(decrypts))
}

/// A function of a file, by its name.
fn function<'t>(text: &'t str, name: &str) -> &'t str {
    let start = text.find(&format!("\nfn {name}(")).map_or(text.len(), |at| at + 1);
    let len = text[start..].find("\n}\n").map_or(0, |len| len + 3);
    &text[start..start + len]
}

/// `item(0), item(1), ...`
fn list(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(", ")
}

/// Bit planes with the circuits of a direction.
fn planes(text: &mut String, decrypts: bool) {
    let head = CIRCUITS.find("\n\n// ").unwrap_or(CIRCUITS.len());
    *text += &CIRCUITS[..head];
    *text += "\n";
    let names = if decrypts { ["inverse_sbox", "inverse_column"] } else { ["sbox", "column"] };
    for name in names {
        *text += function(CIRCUITS, name);
    }
    *text += PLANES;
    writeln!(text, "struct State {{ {} }}", list(16, |p| format!("p{p}: Byte"))).unwrap();
    *text += &transpose_bits();
    *text += &between_groups_and_planes();
}

/// In each byte of 8 words, rows for columns of the 8 by 8 bits. Its own inverse.
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

/// The component of a block's word in column `c`.
fn component(c: usize) -> &'static str {
    ["x", "y", "z", "w"][c]
}

fn between_groups_and_planes() -> String {
    let mut text = format!("fn planes_of_groups({}) -> State {{\n", list(8, |g| format!("g{g}: Group")));
    let byte = |p: usize| {
        let words = list(8, |g| format!("g{g}.b{}.{}", p % 4, component(p / 4)));
        format!("\n        transpose_bits(Byte({words}))")
    };
    writeln!(text, "    return State({});\n}}", list(16, byte)).unwrap();
    writeln!(
        text,
        "fn transposed(s: State) -> State {{ return State({}); }}",
        list(16, |p| format!("transpose_bits(s.p{p})"))
    )
    .unwrap();
    for g in 0..8 {
        let block = |row: usize| {
            format!("vec4({})", list(4, |column| format!("s.p{}.b{g}", 4 * column + row)))
        };
        writeln!(
            text,
            "fn group{g}(s: State) -> Group {{ return transpose_bytes(Group({})); }}",
            list(4, block)
        )
        .unwrap();
    }
    text
}

/// Where rounds find their keys.
#[derive(Clone, Copy, PartialEq)]
enum Keys {
    /// In a schedule; the first and the last are added to blocks, which is cheaper.
    Words,
    /// As planes in data, all of them.
    Planes,
}

/// The rounds. Bytes move by other names: byte p of the next state is computed from those that ShiftRows brings.
fn cipher(decrypts: bool, keys: Keys) -> String {
    let (sbox, column, turn) = if decrypts { ("inverse_sbox", "inverse_column", 12) } else { ("sbox", "column", 4) };
    let source = |p: usize| (p + turn * (p % 4)) % 16;
    let plane = |p: usize| format!("byte_at(keys + 32u * round + {}u)", 2 * p);
    let mut text = String::from("fn cipher(start: State, keys: u32) -> State {\n");
    if keys == Keys::Planes {
        let byte = |p: usize| format!("add_bytes(start.p{p}, byte_at(keys + {}u))", 2 * p);
        writeln!(text, "    var s = State({});", list(16, byte)).unwrap();
    } else {
        text += "    var s = start;\n";
    }
    text += "    for (var round = 1u; round < launch.rounds; round++) {\n";
    if keys == Keys::Words {
        text += "        let key = schedules[keys + round];\n";
    }
    for c in 0..4 {
        let bytes = list(4, |row| format!("s.p{}", source(4 * c + row)));
        let key = if keys == Keys::Words { format!("key.{}", component(c)) } else { "0u".into() };
        writeln!(text, "        let c{c} = {column}({bytes}, {key});").unwrap();
    }
    let mixed = |p: usize| format!("c{}.row{}", p / 4, p % 4);
    let next = list(16, |p| match keys {
        Keys::Words => mixed(p),
        Keys::Planes => format!("add_bytes({}, {})", mixed(p), plane(p)),
    });
    writeln!(text, "        s = State({next});\n    }}").unwrap();
    let last = list(16, |p| format!("{sbox}(s.p{})", source(p)));
    match keys {
        Keys::Words => writeln!(text, "    return State({last});\n}}").unwrap(),
        Keys::Planes => {
            writeln!(text, "    let round = launch.rounds;\n    let l = State({last});").unwrap();
            let sum = list(16, |p| format!("add_bytes(l.p{p}, {})", plane(p)));
            writeln!(text, "    return State({sum});\n}}").unwrap();
        }
    }
    text
}

/// What goes into the cipher for a row and what is added to what comes out, beside tweaks.
fn rows(text: &mut String, part: Part) {
    let (input, output) = match part {
        Part::EcbEncrypt | Part::EcbDecrypt | Part::XtsEncrypt | Part::XtsDecrypt => {
            ("block_at(tile, index)", "vec4(0u)")
        }
        Part::Ctr => ("swap_bytes(advance(number_of(tile.reg), index).wzyx)", "block_at(tile, index)"),
        Part::CbcDecrypt => ("block_at(tile, index)", "block_before(tile, index)"),
        Part::CfbDecrypt => ("block_before(tile, index)", "block_at(tile, index)"),
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
    writeln!(
        text,
        "fn row_in(tile: Tile, index: u32) -> vec4<u32> {{ return {input}; }}\n\
         fn row_out(tile: Tile, index: u32) -> vec4<u32> {{ return {output}; }}\n\
         fn row_tweak(tile: Tile, lane: u32) -> vec4<u32> {{ return {first}; }}\n\
         fn row_next(tweak: vec4<u32>) -> vec4<u32> {{ return {next}; }}"
    )
    .unwrap();
}

/// Eight groups of four rows, and the state they make.
fn groups(text: &mut String) {
    for g in 0..8 {
        let rows = list(4, |row| format!("r{}", 4 * g + row));
        writeln!(text, "    let g{g} = transpose_bytes(Group({rows}));").unwrap();
    }
    writeln!(text, "    return planes_of_groups({});\n}}", list(8, |g| format!("g{g}"))).unwrap();
}

fn start_blocks(part: Part) -> String {
    let mut text = String::from(
        "fn start(tile: Tile, lane: u32, schedule: u32) -> State {\n    let key = schedules[schedule];\n",
    );
    if part.tweaks() {
        text += "    var tweak = row_tweak(tile, lane);\n";
    }
    for row in 0..32 {
        let tweak = if part.tweaks() { " ^ tweak" } else { "" };
        writeln!(text, "    let r{row} = row_in(tile, lane + LANES * {row}u) ^ key{tweak};").unwrap();
        if part.tweaks() && row < 31 {
            text += "    tweak = row_next(tweak);\n";
        }
    }
    groups(&mut text);
    text
}

/// Bits of a row's number in the order of planes: see `shaders/planes.wgsl`.
const ROW_NUMBER: [&str; 5] = ["0xff00ff00u", "0xffff0000u", "0xaaaaaaaau", "0xccccccccu", "0xf0f0f0f0u"];

/// Planes of counters with the first round key added, without transposing anything: row r is the first one plus
/// `LANES * r`, five bits that are added to five bits; above, only a carry goes on.
fn start_counters(wide: bool) -> String {
    let begin = if wide { 5 } else { 0 };
    let mut text = String::from(
        "fn start(tile: Tile, lane: u32, schedule: u32) -> State {\n\
         \x20   let n = advance(number_of(tile.reg), lane);\n\
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
    let mut text = String::from(
        "fn finish(tile: Tile, lane: u32, schedule: u32, state: State) {\n\
         \x20   let key = schedules[schedule + launch.rounds];\n\
         \x20   let s = transposed(state);\n",
    );
    if part.tweaks() {
        text += "    var tweak = row_tweak(tile, lane);\n";
    }
    for g in 0..8 {
        writeln!(text, "    let g{g} = group{g}(s);").unwrap();
        for place in 0..4 {
            let index = format!("lane + LANES * {}u", 4 * g + place);
            let added = if part.tweaks() { "tweak".into() } else { format!("row_out(tile, {index})") };
            writeln!(text, "    store(tile, {index}, g{g}.b{place} ^ key ^ {added});").unwrap();
            if part.tweaks() {
                text += "    tweak = row_next(tweak);\n";
            }
        }
    }
    text += "}\n";
    text
}

/// For chains: the planes of a round key of 32 messages, and how a state is put into data.
fn key_planes() -> String {
    let mut text = String::from("fn key_planes(number: u32, round: u32) -> State {\n");
    for row in 0..32 {
        let key = format!("message_of(number, {row}u).key");
        writeln!(text, "    let r{row} = schedules[schedule_of({key}, DECRYPTS) + round];").unwrap();
    }
    groups(&mut text);
    text += "fn put_state(place: u32, s: State) {\n";
    for p in 0..16 {
        writeln!(text, "    put_byte(place + {}u, s.p{p});", 2 * p).unwrap();
    }
    text += "}\n";
    text
}

/// For chains: 32 blocks in data to planes, and back.
fn block_planes() -> String {
    let mut text = String::from("fn block_planes(place: u32) -> State {\n");
    for row in 0..32 {
        writeln!(text, "    let r{row} = data[place + {row}u];").unwrap();
    }
    groups(&mut text);
    text += "fn put_blocks(place: u32, state: State) {\n    let s = transposed(state);\n";
    for g in 0..8 {
        writeln!(text, "    let g{g} = group{g}(s);").unwrap();
        for row in 0..4 {
            writeln!(text, "    data[place + {}u] = g{g}.b{row};", 4 * g + row).unwrap();
        }
    }
    text += "}\n";
    text
}

/// The T-table of a direction for row 0, computed: SubBytes and the column that MixColumns makes of the byte.
fn table(decrypts: bool) -> String {
    let (sbox, inverse) = substitutions();
    let words = list(256, |byte| {
        let word = if decrypts {
            [14, 9, 13, 11].map(|factor| times(inverse[byte], factor))
        } else {
            [2, 1, 1, 3].map(|factor| times(sbox[byte], factor))
        };
        format!("{:#010x}u", u32::from_le_bytes(word))
    });
    format!("const TABLE = array<u32, 256>({words});\n")
}

/// A product in GF(2^8).
fn times(mut a: u8, mut b: u8) -> u8 {
    let mut sum = 0;
    while b != 0 {
        sum ^= if b & 1 == 1 { a } else { 0 };
        a = a << 1 ^ if a & 0x80 != 0 { 0x1b } else { 0 };
        b >>= 1;
    }
    sum
}

/// The S-box (FIPS 197, 5.1.1) and its inverse, by powers of 3, which reach every byte but 0, and of its inverse.
fn substitutions() -> ([u8; 256], [u8; 256]) {
    let (mut sbox, mut inverse) = ([0; 256], [0; 256]);
    sbox[0] = 0x63;
    inverse[0x63] = 0;
    let (mut power, mut reciprocal) = (1u8, 1u8);
    for _ in 0..255 {
        power = times(power, 3);
        reciprocal = times(reciprocal, 0xf6);
        let turned = (1..5).fold(reciprocal, |sum, by| sum ^ reciprocal.rotate_left(by));
        sbox[usize::from(power)] = turned ^ 0x63;
        inverse[usize::from(turned ^ 0x63)] = power;
    }
    (sbox, inverse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_s_box_is_that_of_fips_197() {
        let (sbox, inverse) = substitutions();
        assert_eq!([0x00, 0x53, 0xff, 0x9a].map(|b: usize| sbox[b]), [0x63, 0xed, 0x16, 0xb8]);
        assert!((0..=255u8).all(|b| inverse[usize::from(sbox[usize::from(b)])] == b));
    }

    #[test]
    fn functions_are_found_whole() {
        let text = "x\nfn a(b: u32) {\n    c();\n}\n\nfn d() {\n}\n";
        assert_eq!(function(text, "a"), "fn a(b: u32) {\n    c();\n}\n");
        assert_eq!(function(text, "d"), "fn d() {\n}\n");
        assert_eq!(function(text, "c"), "");
    }
}
