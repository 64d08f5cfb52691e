// Zeroes the plaintext of messages whose tag is wrong. The tiles are those of decryption; `extra` is the place of the status
// (see gcm_tags.wgsl). `option` invocations share a tile.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let number = id.x / launch.option;
    if number >= launch.tiles { return; }
    let tile = tiles[launch.first + number];
    if data[tile.extra].x == 1u { return; }
    for (var index = id.x % launch.option; index < tile.blocks; index += launch.option) {
        data[tile.at + index] = vec4(0u);
    }
}
