// Computes the powers of the hash key H for all levels. An invocation processes one key. For GHASH, `at` of its tile is the
// place of H = E(K, 0). For POLYVAL, H is the key itself, which is the first round key.

fn times_x(number: vec4<u32>) -> vec4<u32> {
    // RFC 8452, appendix A: mulX_POLYVAL.
    let carry = bitcast<u32>(bitcast<i32>(number.w) >> 31u);
    return ((number << vec4(1u)) | vec4(0u, number.xyz >> vec3(31u))) ^ vec4(carry & 1u, 0u, 0u, carry & 0xc2000000u);
}

fn first_power(tile: Tile) -> vec4<u32> {
    if launch.step == 1u { return schedules[schedule_of(tile.key, 0u)]; }
    return times_x(number_of(data[tile.at]));
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= launch.tiles { return; }
    var power = first_power(tiles[launch.first + id.x]);
    for (var level = 0u; level < LEVELS; level++) {
        data[launch.scratch + LEVELS * id.x + level] = power;
        // Raises the power to RUN by squaring: RUN is a power of two.
        for (var size = 1u; size < RUN; size *= 2u) { power = times(power, factor_of(power)); }
    }
}
