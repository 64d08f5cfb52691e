// OCB3 of whole blocks, with a tile for each invocation.

fn set_checksum(tile: Tile, lane: u32, sum: vec4<u32>) { data[tile.state.w] = sum; }

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= launch.tiles { return; }
    let tile = tiles[launch.first + id.x];
    let schedule = schedule_of(tile.key, DECRYPTS);
    finish(tile, 0u, schedule, cipher(start(tile, 0u, schedule), schedule));
}
