// Computes the powers of H for all levels from H = E(K, 0). An invocation processes one key; `at` of its tile is the place
// of H.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= launch.tiles { return; }
    let number = number_of(data[tiles[launch.first + id.x].at]);
    // Multiplies H by x (RFC 8452, appendix A: mulX_POLYVAL).
    let carry = bitcast<u32>(bitcast<i32>(number.w) >> 31u);
    var power = ((number << vec4(1u)) | vec4(0u, number.xyz >> vec3(31u))) ^ vec4(carry & 1u, 0u, 0u, carry & 0xc2000000u);
    for (var level = 0u; level < LEVELS; level++) {
        data[launch.scratch + LEVELS * id.x + level] = power;
        // Raises the power to RUN by squaring: RUN is a power of two.
        for (var size = 1u; size < RUN; size *= 2u) { power = times(power, factor_of(power)); }
    }
}
