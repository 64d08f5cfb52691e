// The planes of the round keys of an invocation's messages.

@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if 32u * id.x >= launch.tiles { return; }
    for (var round = 0u; round <= launch.rounds; round++) {
        put_state(planes_of(id.x) + 32u * round, key_planes(id.x, round));
    }
}
