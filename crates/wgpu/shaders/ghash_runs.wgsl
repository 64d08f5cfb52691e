// A level of GHASH: a run an invocation. `option` is the level; the register goes in with a message's first block.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= launch.tiles { return; }
    let tile = tiles[launch.first + id.x];
    let factor = factor_of(data[launch.scratch + LEVELS * tile.key + launch.option]);
    var sum = number_of(tile.reg);
    for (var i = 0u; i < tile.blocks; i++) {
        let block = number_of(data[tile.at + i]);
        // Above the lowest level the last block is done already.
        let is_lowest = launch.option == 0u;
        sum = times(sum ^ select(vec4(0u), block, is_lowest), factor) ^ select(block, vec4(0u), is_lowest);
    }
    data[tile.extra] = swap_bytes(sum.wzyx);
}
