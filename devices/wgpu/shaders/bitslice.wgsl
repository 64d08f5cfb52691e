// A pass on bit planes; an invocation processes 32 rows at once. src/shader.rs generates `start` and `finish` for each pass.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let number = id.x / LANES;
    if number >= launch.tiles { return; }
    let tile = tiles[launch.first + number];
    let lane = id.x % LANES;
    if is_refused(tile) {
        zero(tile, lane);
        return;
    }
    let schedule = schedule_of(tile.key, DECRYPTS);
    finish(tile, lane, schedule, cipher(start(tile, lane, schedule), schedule));
}
