// Eight blocks under keys of their own: fewer than bit planes of 32 have, for where there are few, but each with all of its
// columns side by side.
//
// A state is their rows: bit 8 * column + number of a plane. So ShiftRows turns words, and one circuit of a column does all
// four of a block. A tile is a message, or a block.
const MESSAGES = 8u;

fn message_of(number: u32, index: u32) -> Tile {
    return tiles[launch.first + min(MESSAGES * number + index, launch.tiles - 1u)];
}

// Of a block's 16 bytes, rows for columns. Its own inverse.
fn turned_block(b: vec4<u32>) -> vec4<u32> {
    let x = lower(b.x, b.z, 16u, 0x0000ffffu);
    let y = lower(b.y, b.w, 16u, 0x0000ffffu);
    let z = upper(b.x, b.z, 16u, 0x0000ffffu);
    let w = upper(b.y, b.w, 16u, 0x0000ffffu);
    return vec4(lower(x, y, 8u, 0x00ff00ffu), upper(x, y, 8u, 0x00ff00ffu), lower(z, w, 8u, 0x00ff00ffu),
                upper(z, w, 8u, 0x00ff00ffu));
}

// Eight blocks go into a state and out of it one after the other, by pushing it on; in between bits and words trade places.
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

// ShiftRows, or its inverse.
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

// The planes of the round keys of an invocation's tiles.
fn key_planes(number: u32, round: u32) -> Column {
    var s: Column;
    for (var i = 0u; i < MESSAGES; i++) {
        s = with_block(s, schedules[schedule_of(message_of(number, i).key, DECRYPTS) + round]);
    }
    return transposed(s);
}
