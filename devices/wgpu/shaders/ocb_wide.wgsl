// OCB3 of whole blocks. 32 invocations share a tile, and add their checksums in workgroup memory.

var<workgroup> sums: array<vec4<u32>, 64>;
var<private> member: u32;  // the number of the invocation in its workgroup

fn set_checksum(tile: Tile, lane: u32, sum: vec4<u32>) { sums[member] = sum; }

// Adds the sums of the lanes from `distance` to 2 * `distance` - 1 to the sums of the lanes below `distance`.
fn add_upper(lane: u32, distance: u32) {
    workgroupBarrier();
    if lane < distance { sums[member] ^= sums[member + distance]; }
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let number = id.x / LANES;
    let lane = id.x % LANES;
    member = index;
    var tile = tiles[launch.first + min(number, launch.tiles - 1u)];
    // All invocations of a workgroup must reach the barriers, so those without a tile process no blocks.
    if number >= launch.tiles { tile.blocks = 0u; }
    let schedule = schedule_of(tile.key, DECRYPTS);
    finish(tile, lane, schedule, cipher(start(tile, lane, schedule), schedule));
    // This is not a loop, because a compiler could treat the control flow of a loop with barriers as non-uniform.
    add_upper(lane, 16u);
    add_upper(lane, 8u);
    add_upper(lane, 4u);
    add_upper(lane, 2u);
    add_upper(lane, 1u);
    if lane == 0u && number < launch.tiles { data[tile.state.w] = sums[index]; }
    // The checksums are wiped, because a later workgroup could read them.
    workgroupBarrier();
    sums[index] = vec4(0u);
}
