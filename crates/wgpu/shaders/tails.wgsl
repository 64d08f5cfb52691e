// The last word of a result goes where others' bytes follow: these stay. A tile is a last block, `blocks` how many bytes of
// it count; in `extra` is the word as it was.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= launch.tiles { return; }
    let tile = tiles[launch.first + id.x];
    let mask = (1u << (8u * (tile.blocks % 4u))) - 1u;
    let word = data[tile.at][tile.blocks / 4u];
    data[tile.at][tile.blocks / 4u] = (word & mask) | (data[tile.extra].x & ~mask);
}
