// OCB3 of whole blocks (RFC 7253, sections 4.2 and 4.3): the rows of an invocation with their offsets, and the checksum of the
// plaintext of a tile.
//
// `state` of a tile contains: the number of blocks of its message before it, a multiple of the blocks of a tile, in two words; the place of
// the first offset of the message; the place of the checksum. src/shader.rs generates `start` and `finish`.

struct Walk {
    offset: vec4<u32>,  // of the current row
    count: vec2<u32>,   // the number of the block of the current row, divided by LANES
    masks: u32,
}

fn first_row(tile: Tile, lane: u32) -> Walk {
    let masks = masks_of(tile.key);
    let number = plus(tile.state.xy, lane + 1u);
    let offset = offset_of(masks, data[tile.state.z], number);
    if LANES == 1u { return Walk(offset, number, masks); }
    return Walk(offset, vec2((number.x >> 5u) | (number.y << 27u), number.y >> 5u), masks);
}

// For each next row, the number n of the block increases by LANES. If LANES is 32, n = 32 h + m, and h increases by 1. Bits
// 5 and above of the Gray code of n are the Gray code of h. Bit 4 is the sum of bit 4 of m and bit 0 of h, so it also
// changes.
fn next_row(walk: Walk) -> Walk {
    let count = plus(walk.count, 1u);
    let change = trailing_zeros(count);
    let masks = walk.masks + 2u;
    if LANES == 1u { return Walk(walk.offset ^ data[masks + change], count, walk.masks); }
    return Walk(walk.offset ^ data[masks + 4u] ^ data[masks + 5u + change], count, walk.masks);
}

// The block of a row. Rows beyond the end of the tile read the last block of the tile. In a tile without blocks, they read the block at
// `at`.
fn row_at(tile: Tile, index: u32) -> vec4<u32> { return data[tile.at + min(index, max(tile.blocks, 1u) - 1u)]; }

// The block of a row if the row is within the tile, otherwise zero. Checksums are sums of these values.
fn counted(tile: Tile, index: u32, block: vec4<u32>) -> vec4<u32> { return select(vec4(0u), block, index < tile.blocks); }
