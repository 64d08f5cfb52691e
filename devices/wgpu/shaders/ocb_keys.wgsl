// Computes the masks of keys. A tile is a key; `at` is the place of the block of zeros that was encrypted under it.

// Doubling in GF(2^128), most significant bit first, without a branch on the value.
fn doubled(block: vec4<u32>) -> vec4<u32> {
    let number = number_of(block);
    let carry = bitcast<u32>(bitcast<i32>(number.w) >> 31u) & 0x87u;
    return swap_bytes(((number << vec4(1u)) ^ vec4(carry, number.xyz >> vec3(31u))).wzyx);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= launch.tiles { return; }
    let tile = tiles[launch.first + id.x];
    let masks = masks_of(tile.key);
    var mask = data[tile.at];
    for (var i = 0u; i < launch.steps + 2u; i++) {
        data[masks + i] = mask;
        mask = doubled(mask);
    }
}
