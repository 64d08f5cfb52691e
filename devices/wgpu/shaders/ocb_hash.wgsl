// Adds the offsets to the blocks of associated data. A tile is at most 32 blocks of a message. `state` has the number of blocks
// before the tile in two words. `extra` is 1 if the last block of the tile is partial; the host has padded it.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= launch.tiles { return; }
    let tile = tiles[launch.first + id.x];
    let masks = masks_of(tile.key);
    var offset = offset_of(masks, vec4(0u), tile.state.xy);
    for (var index = 0u; index < tile.blocks; index++) {
        let is_partial = tile.extra == 1u && index + 1u == tile.blocks;
        var mask = masks;
        if !is_partial { mask += 2u + trailing_zeros(plus(tile.state.xy, index + 1u)); }
        offset ^= data[mask];
        data[tile.at + index] ^= offset;
    }
}
