// Eight blocks as bit planes, each block under its own key. This layout is for a small number of blocks; the layout of
// planes.wgsl needs 32.
//
// A state has one Byte for each row. Bit 8 * c + b of each of its planes belongs to column c of block b, so ShiftRows
// rotates words, and the circuit for one column computes the four columns of a block at once. A tile is a message or a
// block.
const MESSAGES = 8u;

fn message_of(number: u32, index: u32) -> Tile {
    return tiles[launch.first + min(MESSAGES * number + index, launch.tiles - 1u)];
}

// Transposes the 4 by 4 bytes of a block. A second call restores the block.
fn turned_block(b: vec4<u32>) -> vec4<u32> {
    let x = lower(b.x, b.z, 16u, 0x0000ffffu);
    let y = lower(b.y, b.w, 16u, 0x0000ffffu);
    let z = upper(b.x, b.z, 16u, 0x0000ffffu);
    let w = upper(b.y, b.w, 16u, 0x0000ffffu);
    return vec4(lower(x, y, 8u, 0x00ff00ffu), upper(x, y, 8u, 0x00ff00ffu), lower(z, w, 8u, 0x00ff00ffu),
                upper(z, w, 8u, 0x00ff00ffu));
}

// `with_block` puts a block into a state, `first_block` reads a block, and `without_block` removes it. Eight blocks are put
// in or removed one after another; each call moves the words of the state by one place. `transposed` converts between a
// state of blocks and a state of bit planes.
fn with_block(s: Column, block: vec4<u32>) -> Column {
    let rows = turned_block(block);
    return Column(pushed(s.row0, rows.x), pushed(s.row1, rows.y), pushed(s.row2, rows.z), pushed(s.row3, rows.w));
}
fn without_block(s: Column) -> Column {
    return Column(pushed(s.row0, 0u), pushed(s.row1, 0u), pushed(s.row2, 0u), pushed(s.row3, 0u));
}
fn first_block(s: Column) -> vec4<u32> { return turned_block(vec4(s.row0.b0, s.row1.b0, s.row2.b0, s.row3.b0)); }
fn transposed(s: Column) -> Column {
    return Column(transpose_bits(s.row0), transpose_bits(s.row1), transpose_bits(s.row2), transpose_bits(s.row3));
}

// `shifted` is ShiftRows or its inverse; `turned_byte` rotates one row.
fn turned_byte(a: Byte, by: u32) -> Byte {
    let back = 32u - by;
    return Byte((a.b0 >> by) | (a.b0 << back), (a.b1 >> by) | (a.b1 << back), (a.b2 >> by) | (a.b2 << back),
                (a.b3 >> by) | (a.b3 << back), (a.b4 >> by) | (a.b4 << back), (a.b5 >> by) | (a.b5 << back),
                (a.b6 >> by) | (a.b6 << back), (a.b7 >> by) | (a.b7 << back));
}
fn shifted(s: Column) -> Column {
    let by = select(8u, 24u, DECRYPTS == 1u);
    return Column(s.row0, turned_byte(s.row1, by), turned_byte(s.row2, 16u), turned_byte(s.row3, 32u - by));
}

fn sum_of(a: Column, b: Column) -> Column {
    return Column(add_bytes(a.row0, b.row0), add_bytes(a.row1, b.row1), add_bytes(a.row2, b.row2), add_bytes(a.row3, b.row3));
}

// The bit planes of the round keys with number `round` of the tiles of invocation `number`.
fn key_planes(number: u32, round: u32) -> Column {
    var s: Column;
    for (var i = 0u; i < MESSAGES; i++) {
        s = with_block(s, schedules[schedule_of(message_of(number, i).key, DECRYPTS) + round]);
    }
    return transposed(s);
}
