// Runs at most `launch.steps` steps of the messages of each invocation, starting with step `launch.step`. src/shader.rs
// generates two functions for each direction of the cipher: `substituted` applies the S-box, and `mixed` applies the S-box
// and MixColumns.

fn cipher(start: Column, keys: u32) -> Column {
    var s = start;
    for (var round = 0u; round <= launch.rounds; round++) {
        if round == launch.rounds { s = substituted(shifted(s)); }
        else if round > 0u { s = mixed(shifted(s)); }
        s = sum_of(s, column_at(keys + MESSAGES * round));
    }
    return s;
}

@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if MESSAGES * id.x >= launch.tiles { return; }
    let here = min(launch.tiles - MESSAGES * id.x, MESSAGES);
    var steps = 0u;
    for (var i = 0u; i < here; i++) { steps = max(steps, steps_of(message_of(id.x, i))); }
    steps = min(steps, launch.step + launch.steps);
    for (var step = launch.step; step < steps; step++) {
        var s: Column;
        for (var i = 0u; i < MESSAGES; i++) {
            let tile = message_of(id.x, i);
            var block = vec4(0u);
            if i < here && step < steps_of(tile) { block = chain_input(tile, step); }
            s = with_block(s, block);
        }
        s = transposed(cipher(transposed(s), planes_of(id.x)));
        for (var i = 0u; i < here; i++) {
            let tile = message_of(id.x, i);
            if step < steps_of(tile) { chain_output(tile, step, first_block(s)); }
            s = without_block(s);
        }
    }
}
