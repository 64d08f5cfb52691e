// What every shader sees: data, what the host gives with them, and how a launch finds its share.
//
// Blocks of data are in `data`, each message from a multiple of 16 bytes on, so that the host alone deals with bytes.
// A tile is what an invocation does (LANES = 1), or 32 of them together (LANES = 32; neighbours then have neighbouring
// blocks, so that memory accesses coalesce). Row r of an invocation is block `lane + LANES * r` of its tile.
//
// The layout of Tile and Launch is shared with src/launch.rs.

struct Tile {
    at: u32,      // its first block in `data`
    blocks: u32,  // how many it has, at most 32 * LANES; for chains bytes of the message
    key: u32,     // number of its key
    extra: u32,   // XTS: where the encrypted tweak is; GCM: its status; GHASH and chains: where the result goes, or the register
    reg: vec4<u32>,
}

struct Launch {
    first: u32,    // number of the first tile
    tiles: u32,    // how many
    rounds: u32,
    option: u32,   // of the pass
    to: u32,       // what is added to a block's place for where its result goes
    scratch: u32,  // the first block of what the pass needs beside
    step: u32,     // chains: the first one
    steps: u32,    // chains: how many at most
}

@group(0) @binding(0) var<storage, read_write> data: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> tiles: array<Tile>;
// Round keys: of each key those for encryption, and behind them those for decryption in the order of use.
@group(0) @binding(2) var<storage, read> schedules: array<vec4<u32>>;
// Not a uniform: lavapipe compiles a shader anew whenever a uniform changes that it branches on.
@group(0) @binding(3) var<storage, read> launch: Launch;

fn schedule_of(key: u32, decrypts: u32) -> u32 { return (2u * key + decrypts) * (launch.rounds + 1u); }

fn swap_bytes(a: vec4<u32>) -> vec4<u32> {
    let halves = (a << vec4(16u)) | (a >> vec4(16u));
    return ((halves & vec4(0x00ff00ffu)) << vec4(8u)) | ((halves >> vec4(8u)) & vec4(0x00ff00ffu));
}

// A block as a big-endian number: x has the least significant bits.
fn number_of(block: vec4<u32>) -> vec4<u32> { return swap_bytes(block).wzyx; }

// A tile never is empty; rows behind its end read its last block, and write nothing.
fn block_at(tile: Tile, index: u32) -> vec4<u32> { return data[tile.at + min(index, tile.blocks - 1u)]; }

// `extra` is 1 where the block before a tile is in data as well.
fn block_before(tile: Tile, index: u32) -> vec4<u32> {
    let place = min(index, tile.blocks - 1u) + tile.extra;
    return select(data[tile.at + max(place, 1u) - 1u - tile.extra], tile.reg, place == 0u);
}

fn store(tile: Tile, index: u32, block: vec4<u32>) {
    if index < tile.blocks { data[tile.at + index + launch.to] = block; }
}
