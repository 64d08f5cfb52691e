// Pads ciphertexts with zeros to whole blocks. A tile is a partial last block; `blocks` is the number of its bytes.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= launch.tiles { return; }
    let tile = tiles[launch.first + id.x];
    data[tile.at] = first_bytes(data[tile.at], tile.blocks);
}
