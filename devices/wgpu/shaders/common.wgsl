// The part that all shaders share: the buffers, the descriptions of tiles and launches, and access to blocks.
//
// `data` contains the messages and the other blocks that programs read and write. A place is an index in `data`. Each
// message starts at the start of a block, so only the host handles unaligned data.
//
// A tile is a group of blocks. It is processed by one invocation (LANES = 1) or by 32 invocations (LANES = 32). In the
// second case, neighbouring invocations process neighbouring blocks, so that memory accesses coalesce. Row r of an
// invocation is block `lane + LANES * r` of its tile. A tile of rows has at most 32 * LANES blocks.
//
// src/launch.rs writes Tile and Launch and must have the same layout.

struct Tile {
    at: u32,      // the place of the first block
    blocks: u32,  // number of blocks; for serial modes, partial blocks and tags the number of bytes
    key: u32,     // number of the key
    // XTS: the place of the encrypted tweak. CTR: the place of the status. CBC and CFB decryption: see `block_before`. GHASH: the place of
    // the result. Serial modes: the place of the chaining state. Tags, tails and OCB3: see the files of these programs.
    extra: u32,
    // XTS: the power of x for the first block. CTR: the counter. CBC and CFB decryption: the preceding ciphertext block.
    // GHASH: the chaining state. Tags: the expected tag.
    state: vec4<u32>,
}

struct Launch {
    first: u32,    // number of the first tile
    tiles: u32,    // number of tiles
    rounds: u32,
    option: u32,   // depends on the program
    to: u32,       // distance from the place of a block to the place of its result
    scratch: u32,  // the first block of additional memory; what it contains depends on the program
    step: u32,     // serial modes: the first step; CTR: 1 if messages with a wrong tag are zeroed; GHASH: 1 for POLYVAL
    steps: u32,    // serial modes: maximum number of steps; OCB3: the number of masks L_i of a key
}

@group(0) @binding(0) var<storage, read_write> data: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> tiles: array<Tile>;
// For each key the round keys for encryption, followed by the round keys for decryption in the order of use.
@group(0) @binding(2) var<storage, read> schedules: array<vec4<u32>>;
// This is a storage buffer and not a uniform, because lavapipe recompiles a shader when a uniform on which the shader branches changes.
@group(0) @binding(3) var<storage, read> launch: Launch;

fn schedule_of(key: u32, decrypts: u32) -> u32 { return (2u * key + decrypts) * (launch.rounds + 1u); }

fn swap_bytes(a: vec4<u32>) -> vec4<u32> {
    let halves = (a << vec4(16u)) | (a >> vec4(16u));
    return ((halves & vec4(0x00ff00ffu)) << vec4(8u)) | ((halves >> vec4(8u)) & vec4(0x00ff00ffu));
}

// Converts a block to a big-endian number: x has the least significant bits.
fn number_of(block: vec4<u32>) -> vec4<u32> { return swap_bytes(block).wzyx; }

// Rows beyond the end of a tile read the last block of the tile and write nothing. A tile has at least one block.
fn block_at(tile: Tile, index: u32) -> vec4<u32> { return data[tile.at + min(index, tile.blocks - 1u)]; }

// The ciphertext block before a block of a tile. For the first block of a tile, this is the block before the tile in `data` if `extra` is
// 1, otherwise `state`.
fn block_before(tile: Tile, index: u32) -> vec4<u32> {
    let place = min(index, tile.blocks - 1u) + tile.extra;
    return select(data[tile.at + max(place, 1u) - 1u - tile.extra], tile.state, place == 0u);
}

fn store(tile: Tile, index: u32, block: vec4<u32>) {
    if index < tile.blocks { data[tile.at + index + launch.to] = block; }
}
