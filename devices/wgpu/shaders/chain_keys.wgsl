// Computes the bit planes of the round keys of the messages of each invocation.

@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if MESSAGES * id.x >= launch.tiles { return; }
    for (var round = 0u; round <= launch.rounds; round++) {
        let s = key_planes(id.x, round);
        let place = planes_of(id.x) + MESSAGES * round;
        put_byte(place, s.row0);
        put_byte(place + 2u, s.row1);
        put_byte(place + 4u, s.row2);
        put_byte(place + 6u, s.row3);
    }
}
