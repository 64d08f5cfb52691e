// Encrypts or decrypts the partial block of each message (`option` is 1 for decryption), and computes the block whose encryption gives its
// tag.
//
// A tile is a message:
//
// - `at` is the place of its partial block,
// - `blocks` is the number of bytes of the partial block, which may be 0,
// - `extra` is the place of its first offset,
// - `state` has the number of its whole blocks, which is below 2^32; the place of the checksum of these blocks; the place of the
//   encrypted pad of the partial block; and the place of the block whose encryption gives the tag.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= launch.tiles { return; }
    let tile = tiles[launch.first + id.x];
    let masks = masks_of(tile.key);
    var offset = offset_of(masks, data[tile.extra], vec2(tile.state.x, 0u));
    var checksum = data[tile.state.y];
    if tile.blocks > 0u {
        let input = first_bytes(data[tile.at], tile.blocks);
        let output = first_bytes(input ^ data[tile.state.z], tile.blocks);
        data[tile.at] = output;
        checksum ^= select(input, output, launch.option == 1u);
        checksum[tile.blocks / 4u] ^= 0x80u << (8u * (tile.blocks % 4u));
        offset ^= data[masks];
    }
    data[tile.state.w] = checksum ^ offset ^ data[masks + 1u];
}
