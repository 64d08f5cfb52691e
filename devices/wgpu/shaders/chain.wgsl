// The serial modes. Each step of a message needs the result of the previous step, so an invocation processes MESSAGES
// messages at once, each under its own key. A tile is a message; `extra` is the place of its chaining state.
//
// The messages of a launch should be sorted by length, because an invocation runs until its longest message ends.

// The modes: values of `option`. `Chain` in devices/gpu-host/src/kind.rs has the same values.
const CBC_ENCRYPT = 0u;
const CFB_ENCRYPT = 1u;
const CFB8_ENCRYPT = 2u;
const CFB8_DECRYPT = 3u;
const CFB1_ENCRYPT = 4u;
const CFB1_DECRYPT = 5u;
const OFB = 6u;
const PCBC_ENCRYPT = 7u;
const PCBC_DECRYPT = 8u;
const CBC_MAC = 9u;

// The place in `data` of the bit planes of the round keys of invocation `number`.
fn planes_of(number: u32) -> u32 { return launch.scratch + MESSAGES * number * (launch.rounds + 1u); }

fn steps_of(tile: Tile) -> u32 {
    if launch.option >= CFB8_ENCRYPT && launch.option <= CFB8_DECRYPT { return tile.blocks; }
    if launch.option >= CFB1_ENCRYPT && launch.option <= CFB1_DECRYPT { return 8u * tile.blocks; }
    return (tile.blocks + 15u) / 16u;
}

// The input of the cipher in a step of a message.
fn chain_input(tile: Tile, step: u32) -> vec4<u32> {
    if launch.option == PCBC_DECRYPT { return data[tile.at + step]; }
    let before = data[tile.extra];
    if launch.option == CBC_ENCRYPT || launch.option == PCBC_ENCRYPT || launch.option == CBC_MAC {
        return before ^ data[tile.at + step];
    }
    return before;
}

// `push_byte` and `push_bit` shift a byte or a bit of ciphertext into the end of the chaining state.
fn push_byte(a: vec4<u32>, byte: u32) -> vec4<u32> {
    return (a >> vec4(8u)) | vec4(a.yzw << vec3(24u), byte << 24u);
}
fn push_bit(a: vec4<u32>, bit: u32) -> vec4<u32> {
    let words = swap_bytes(a);
    return swap_bytes((words << vec4(1u)) | vec4(words.yzw >> vec3(31u), bit));
}

// Computes and writes the output and the next chaining state. `block` is the output of the cipher.
fn chain_output(tile: Tile, step: u32, block: vec4<u32>) {
    let place = tile.at + step;
    if launch.option >= CFB8_ENCRYPT && launch.option <= CFB1_DECRYPT {
        let is_byte = launch.option <= CFB8_DECRYPT;
        let index = select(step / 8u, step, is_byte);
        let word = data[tile.at + index / 16u][index / 4u % 4u];
        // The step processes 8 bits or 1 bit of `word`: shifting `word` by `shift` and masking it by `ones` selects them.
        let shift = 8u * (index % 4u) + select(7u - step % 8u, 0u, is_byte);
        let ones = select(1u, 0xffu, is_byte);
        let text = (word >> shift) & ones;
        let result = text ^ (select(block.x >> 7u, block.x, is_byte) & ones);
        data[tile.at + index / 16u][index / 4u % 4u] = (word & ~(ones << shift)) | (result << shift);
        let fed_back = select(text, result, launch.option == CFB8_ENCRYPT || launch.option == CFB1_ENCRYPT);
        if is_byte {
            data[tile.extra] = push_byte(data[tile.extra], fed_back);
        } else {
            data[tile.extra] = push_bit(data[tile.extra], fed_back);
        }
        return;
    }
    let text = data[place];
    let before = data[tile.extra];
    // A partial block ends the message and does not change the chaining state.
    let is_whole = tile.blocks >= 16u * (step + 1u);
    var result = block;
    var state = block;
    if launch.option == CFB_ENCRYPT {
        result = block ^ text;
        state = result;
    } else if launch.option == OFB {
        result = block ^ text;
    } else if launch.option == PCBC_ENCRYPT {
        state = block ^ text;
    } else if launch.option == PCBC_DECRYPT {
        result = block ^ before;
        state = result ^ text;
    }
    if launch.option != CBC_MAC { data[place] = result; }
    if is_whole { data[tile.extra] = state; }
}

// Bit planes in `data`: a Byte occupies two blocks.
fn column_at(place: u32) -> Column {
    return Column(byte_at(place), byte_at(place + 2u), byte_at(place + 4u), byte_at(place + 6u));
}

fn byte_at(place: u32) -> Byte {
    let low = data[place];
    let high = data[place + 1u];
    return Byte(low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w);
}

fn put_byte(place: u32, byte: Byte) {
    data[place] = vec4(byte.b0, byte.b1, byte.b2, byte.b3);
    data[place + 1u] = vec4(byte.b4, byte.b5, byte.b6, byte.b7);
}
