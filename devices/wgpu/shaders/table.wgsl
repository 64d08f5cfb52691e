// A pass by table lookups in workgroup memory, one block at a time. NOT constant time: addresses depend on the state.
//
// Only the first of the four T-tables is stored, because the others are rotations of it. It is stored COPIES times, so that
// neighbouring invocations rarely access the same bank. The copies take 8 KiB; every device has 16 KiB. The host puts the
// table after the round keys: it starts at block `launch.scratch` of `schedules`.

const COPIES = 8u;
const INVOCATIONS = 64u;

var<workgroup> table: array<u32, 2048>;

fn lookup(word: u32, row: u32, copy: u32) -> u32 {
    return table[(((word >> (8u * row)) & 0xffu) * COPIES) + copy];
}

fn rotated(word: u32, row: u32) -> u32 {
    return (word << (8u * row)) | (word >> (32u - 8u * row));
}

// A column after a round. ShiftRows takes row 0 of this column from column a, row 1 from b, row 2 from c and row 3 from d.
fn round_column(a: u32, b: u32, c: u32, d: u32, key: u32, copy: u32) -> u32 {
    return lookup(a, 0u, copy) ^ rotated(lookup(b, 1u, copy), 1u) ^ rotated(lookup(c, 2u, copy), 2u)
        ^ rotated(lookup(d, 3u, copy), 3u) ^ key;
}

// The result of the S-box or its inverse, from an entry of the table. For encryption, byte 1 of the entry is the result. For
// decryption, the sum of the four bytes is the result, since 14 + 9 + 13 + 11 = 1 in GF(2^8).
fn substituted(word: u32, row: u32, copy: u32) -> u32 {
    let entry = lookup(word, row, copy);
    if DECRYPTS == 0u { return ((entry >> 8u) & 0xffu) << (8u * row); }
    let halves = entry ^ (entry >> 16u);
    return ((halves ^ (halves >> 8u)) & 0xffu) << (8u * row);
}

fn last_column(a: u32, b: u32, c: u32, d: u32, key: u32, copy: u32) -> u32 {
    return (substituted(a, 0u, copy) | substituted(b, 1u, copy) | substituted(c, 2u, copy) | substituted(d, 3u, copy)) ^ key;
}

fn cipher(block: vec4<u32>, schedule: u32, copy: u32) -> vec4<u32> {
    var s = block ^ schedules[schedule];
    for (var round = 1u; round < launch.rounds; round++) {
        let key = schedules[schedule + round];
        // InvShiftRows takes rows 1 and 3 from the opposite side.
        let left = select(s.yzwx, s.wxyz, DECRYPTS == 1u);
        let right = select(s.wxyz, s.yzwx, DECRYPTS == 1u);
        s = vec4(round_column(s.x, left.x, s.z, right.x, key.x, copy), round_column(s.y, left.y, s.w, right.y, key.y, copy),
                 round_column(s.z, left.z, s.x, right.z, key.z, copy), round_column(s.w, left.w, s.y, right.w, key.w, copy));
    }
    let key = schedules[schedule + launch.rounds];
    let left = select(s.yzwx, s.wxyz, DECRYPTS == 1u);
    let right = select(s.wxyz, s.yzwx, DECRYPTS == 1u);
    return vec4(last_column(s.x, left.x, s.z, right.x, key.x, copy), last_column(s.y, left.y, s.w, right.y, key.y, copy),
                last_column(s.z, left.z, s.x, right.z, key.z, copy), last_column(s.w, left.w, s.y, right.w, key.w, copy));
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    for (var i = local; i < 256u * COPIES; i += INVOCATIONS) {
        let entry = i / COPIES;
        table[i] = schedules[launch.scratch + entry / 4u][entry % 4u];
    }
    workgroupBarrier();
    let number = id.x / LANES;
    if number >= launch.tiles { return; }
    let tile = tiles[launch.first + number];
    let lane = id.x % LANES;
    if is_refused(tile) {
        zero(tile, lane);
        return;
    }
    let schedule = schedule_of(tile.key, DECRYPTS);
    let copy = local % COPIES;
    var tweak = row_tweak(tile, lane);
    for (var index = lane; index < tile.blocks; index += LANES) {
        let input = row_in(tile, index) ^ tweak;
        store(tile, index, cipher(input, schedule, copy) ^ row_out(tile, index) ^ tweak);
        tweak = row_next(tweak);
    }
}
