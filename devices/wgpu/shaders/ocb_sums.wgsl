// Adds blocks. A tile is a run of blocks, which may be empty; `extra` is the place of the sum.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= launch.tiles { return; }
    let tile = tiles[launch.first + id.x];
    var sum = vec4(0u);
    for (var index = 0u; index < tile.blocks; index++) { sum ^= data[tile.at + index]; }
    data[tile.extra] = sum;
}
