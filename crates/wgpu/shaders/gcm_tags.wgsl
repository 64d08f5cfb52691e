// Tags. A tile is a message: its hash; how many bytes its tag has; in `extra` the mask; in `reg` the tag to compare with. From
// `launch.scratch` on are tags, written when sealing, and behind those statuses. `option` is 1 when opening.

// As lockstep_core::work::Status has them.
const DONE = 1u;
const REFUSED = 2u;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= launch.tiles { return; }
    let tile = tiles[launch.first + id.x];
    let tag = data[tile.at] ^ data[tile.extra];
    var status = DONE;
    if launch.option == 1u {
        // The right tag of a message that is refused never leaves the device.
        let wrong = first_bytes(tag, tile.blocks) ^ tile.reg;
        status = select(DONE, REFUSED, (wrong.x | wrong.y | wrong.z | wrong.w) != 0u);
    } else {
        data[launch.scratch + id.x] = tag;
    }
    data[launch.scratch + launch.tiles + id.x] = vec4(status, 0u, 0u, 0u);
}
