// Some steps of an invocation's messages.

@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if 32u * id.x >= launch.tiles { return; }
    let here = min(launch.tiles - 32u * id.x, 32u);
    let blocks = blocks_of(id.x);
    var steps = 0u;
    for (var row = 0u; row < here; row++) { steps = max(steps, steps_of(message_of(id.x, row))); }
    steps = min(steps, launch.step + launch.steps);
    for (var step = launch.step; step < steps; step++) {
        for (var row = 0u; row < here; row++) {
            let tile = message_of(id.x, row);
            if step < steps_of(tile) { data[blocks + row] = chain_input(tile, step); }
        }
        put_blocks(blocks, cipher(block_planes(blocks), planes_of(id.x)));
        for (var row = 0u; row < here; row++) {
            let tile = message_of(id.x, row);
            if step < steps_of(tile) { chain_output(tile, step, data[blocks + row]); }
        }
    }
}
