// One level of GHASH or POLYVAL. A tile is a run of `blocks` blocks from `at` on, which one invocation hashes to the block at
// `extra`; `launch.option` is the level. `state` is added to the first block of a run on level 0: in the first run of a message,
// `state` is the chaining state. In all other runs, `state` is zero.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= launch.tiles { return; }
    let tile = tiles[launch.first + id.x];
    let factor = factor_of(data[launch.scratch + LEVELS * tile.key + launch.option]);
    var sum = to_number(tile.state);
    for (var i = 0u; i < tile.blocks; i++) {
        let block = to_number(data[tile.at + i]);
        // On level 0 a block is added before the multiplication. On the other levels the blocks are hashes, which already
        // have a factor H, so a block is added after the multiplication.
        let is_lowest = launch.option == 0u;
        sum = times(sum ^ select(vec4(0u), block, is_lowest), factor) ^ select(block, vec4(0u), is_lowest);
    }
    data[tile.extra] = to_block(sum);
}
