// For results that end within a word: restores the other bytes of that word, which must not change. A tile is the last block
// of a result. `blocks` is the number of bytes of the block that belong to the result; `extra` is the place of the previous
// content of the word.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= launch.tiles { return; }
    let tile = tiles[launch.first + id.x];
    let mask = (1u << (8u * (tile.blocks % 4u))) - 1u;
    let word = data[tile.at][tile.blocks / 4u];
    data[tile.at][tile.blocks / 4u] = (word & mask) | (data[tile.extra].x & ~mask);
}
