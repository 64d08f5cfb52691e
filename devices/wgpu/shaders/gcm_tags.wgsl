// Computes the tags of GCM and of OCB3 when sealing (`option` is 0), and compares them when opening (`option` is 1).
//
// A tile is a message:
//
// - `at` is the place of its hash; for OCB3, of the encrypted block that OcbEnd has made,
// - `blocks` is the length of its tag in bytes,
// - `extra` is the place of the mask of its tag; for OCB3, of the hash of its associated data,
// - `state` is the tag to compare with.
//
// The results start at `launch.scratch`: a tag for each message (written only when sealing), then a status for each message.

// Values of lockstep_core::work::Status: Done and AuthenticationFailed.
const DONE = 1u;
const REFUSED = 2u;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= launch.tiles { return; }
    let tile = tiles[launch.first + id.x];
    let tag = data[tile.at] ^ data[tile.extra];
    var status = DONE;
    if launch.option == 1u {
        // The computed tag is not written: if a message is refused, its correct tag must not leave the device.
        let wrong = first_bytes(tag, tile.blocks) ^ tile.state;
        status = select(DONE, REFUSED, (wrong.x | wrong.y | wrong.z | wrong.w) != 0u);
    } else {
        data[launch.scratch + id.x] = tag;
    }
    data[launch.scratch + launch.tiles + id.x] = vec4(status, 0u, 0u, 0u);
}
