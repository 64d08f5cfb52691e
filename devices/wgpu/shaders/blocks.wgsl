// Encrypts single blocks in place: XTS tweaks, hash keys, and masks of GCM tags. A tile is a block; an invocation encrypts
// MESSAGES blocks.

@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if MESSAGES * id.x >= launch.tiles { return; }
    var s: Column;
    for (var i = 0u; i < MESSAGES; i++) { s = with_block(s, data[message_of(id.x, i).at]); }
    s = transposed(s);
    for (var round = 0u; round <= launch.rounds; round++) {
        if round == launch.rounds { s = substituted(shifted(s)); }
        else if round > 0u { s = mixed(shifted(s)); }
        s = sum_of(s, key_planes(id.x, round));
    }
    s = transposed(s);
    let here = min(launch.tiles - MESSAGES * id.x, MESSAGES);
    for (var i = 0u; i < here; i++) {
        data[message_of(id.x, i).at] = first_block(s);
        s = without_block(s);
    }
}
