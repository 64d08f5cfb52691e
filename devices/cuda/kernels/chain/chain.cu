// The serial modes. The blocks of a message must be processed one after the other, so a thread processes 32 messages at
// once, each with its own key. The bit planes of the thread have one block of each message (bitslice/state.cuh). The
// kernels are constant time, like those of the family `bitslice`.
//
// The messages of a launch should be sorted by length, because a thread runs until its longest message is complete.
#include "../bitslice/rounds.cuh"
#include "../bitslice/tile.cuh"

namespace {

constexpr u32 messages = 32, lanes = 32;

// The mode of a launch is the low byte of Launch::option. The second byte is the number of rounds. `Chain` in
// devices/gpu-host/src/kind.rs has the same values.
enum Chain : u32 { CBC_ENCRYPT, CFB_ENCRYPT, CFB8_ENCRYPT, CFB8_DECRYPT, CFB1_ENCRYPT, CFB1_DECRYPT, OFB, PCBC_ENCRYPT, PCBC_DECRYPT, CBC_MAC };

__device__ inline u32 rounds_of(const Launch &launch) { return launch.option >> 8; }

// The bit planes of the round keys of a thread's messages, as chain_keys writes them. For each warp, round and plane, the
// words of the threads are next to each other. The planes are read word by word, because the rounds leave no registers for
// more.
struct Planes {
    u32 *words;
    __device__ Planes round(u32 round) const { return {words + 128 * lanes * round}; }
    __device__ Planes column(u32 column) const { return {words + 32 * lanes * column}; }
    __device__ u32 &plane(u32 index) const { return words[lanes * index]; }
    __device__ u32x4 quad(u32 index) const {
        return {plane(4 * index), plane(4 * index + 1), plane(4 * index + 2), plane(4 * index + 3)};
    }
};

__device__ inline Planes planes_of(const Launch &launch, u64 thread) {
    return {(u32 *)launch.scratch + thread / lanes * (rounds_of(launch) + 1) * 128 * lanes + thread % lanes};
}

__device__ inline void add(State &state, const Planes &planes) {
#pragma unroll
    for (u32 p = 0; p < 16; p++)
#pragma unroll
        for (u32 i = 0; i < 8; i++) state.of[p][i] ^= planes.plane(8 * p + i);
}

__device__ inline u64 steps_of(u32 chain, u64 bytes) {
    switch (chain) {
        case CFB8_ENCRYPT: case CFB8_DECRYPT: return bytes;
        case CFB1_ENCRYPT: case CFB1_DECRYPT: return 8 * bytes;
        default: return (bytes + 15) / 16;
    }
}

// The number of bytes of block `step`. Only the last block may be short.
__device__ inline u32 bytes_at(const Segment &segment, u64 step) {
    u64 rest = segment.bytes - 16 * step;
    return rest < 16 ? (u32)rest : 16;
}

__device__ inline u32x4 text_at(const Segment &segment, u64 step) {
    return load_some(global_pointer<const u8>(segment.from) + 16 * step, bytes_at(segment, step));
}

// The input of the cipher.
__device__ inline u32x4 input(u32 chain, const Segment &segment, u64 step) {
    switch (chain) {
        case CBC_ENCRYPT: case PCBC_ENCRYPT: case CBC_MAC: return load_aligned(segment.next) ^ text_at(segment, step);
        case PCBC_DECRYPT: return text_at(segment, step);
        default: return load_aligned(segment.next);
    }
}

// Shift the chaining state and append a byte or a bit at its end.
__device__ inline u32x4 push_byte(u32x4 reg, u32 byte) {
    return {funnel_right(reg.x, reg.y, 8), funnel_right(reg.y, reg.z, 8), funnel_right(reg.z, reg.w, 8), reg.w >> 8 | byte << 24};
}
__device__ inline u32x4 push_bit(u32x4 reg, u32 bit) {
    u32 x = swap_bytes(reg.x), y = swap_bytes(reg.y), z = swap_bytes(reg.z), w = swap_bytes(reg.w);
    return {swap_bytes(funnel_right(y, x, 31)), swap_bytes(funnel_right(z, y, 31)), swap_bytes(funnel_right(w, z, 31)),
            swap_bytes(w << 1 | bit)};
}

// Processes the output of the cipher: writes the output of the mode and updates the chaining state.
__device__ inline void output(u32 chain, Segment &segment, u64 step, u32x4 block) {
    u8 *to = global_pointer<u8>(segment.to);
    u32x4 reg = load_aligned(segment.next);
    switch (chain) {
        case CBC_MAC:
            reg = block;
            break;
        case CBC_ENCRYPT:
            store_block(to + 16 * step, block);
            reg = block;
            break;
        case OFB:
            store_some(to + 16 * step, block ^ text_at(segment, step), bytes_at(segment, step));
            if (bytes_at(segment, step) == 16) reg = block;  // else the message ends
            break;
        case CFB_ENCRYPT: {
            u32x4 ciphertext = block ^ text_at(segment, step);
            store_some(to + 16 * step, ciphertext, bytes_at(segment, step));
            if (bytes_at(segment, step) == 16) reg = ciphertext;
            break;
        }
        case PCBC_ENCRYPT: {
            u32x4 text = text_at(segment, step);
            store_block(to + 16 * step, block);
            reg = text ^ block;
            break;
        }
        case PCBC_DECRYPT: {
            u32x4 ciphertext = text_at(segment, step), text = block ^ reg;
            store_block(to + 16 * step, text);
            reg = text ^ ciphertext;
            break;
        }
        case CFB8_ENCRYPT: case CFB8_DECRYPT: {
            u32 in = global_pointer<const u8>(segment.from)[step], out = (in ^ block.x) & 0xFF;
            to[step] = (u8)out;
            reg = push_byte(reg, chain == CFB8_ENCRYPT ? out : in);
            break;
        }
        default: {  // CFB1: the other bits of the byte are unchanged
            u32 place = 7 - (u32)step % 8;
            u32 in = global_pointer<const u8>(segment.from)[step / 8] >> place & 1, out = in ^ (block.x >> 7 & 1);
            to[step / 8] = (u8)((to[step / 8] & ~(1u << place)) | out << place);
            reg = push_bit(reg, chain == CFB1_ENCRYPT ? out : in);
        }
    }
    store_aligned(segment.next, reg);
}

// Values of a thread that are kept in shared memory, because the rounds use all registers.
struct Kept {
    u64 step, steps;
    Segment *segments;
    u32 *planes;
    u32 here, chain;
};

// Reads a value again from memory. Without this, the compiler would keep the value in a register during the rounds.
template <class T>
__device__ inline T reread(const T &place) { return *(const volatile T *)&place; }

template <bool Decrypt>
__device__ inline void run(const Launch &launch) {
    SHARED(Kept, all_kept, lanes);
    Kept &kept = all_kept[threadIdx.x];
    u64 thread = (u64)blockIdx.x * lanes + threadIdx.x, first = messages * thread;
    kept.chain = launch.option & 0xFF;
    kept.here = first >= launch.count ? 0 : launch.count - first < messages ? (u32)(launch.count - first) : messages;
    kept.segments = launch.segments + first;
    kept.planes = planes_of(launch, thread).words;
    u64 steps = 0;
    for (u32 i = 0; i < kept.here; i++) {
        u64 own = steps_of(kept.chain, kept.segments[i].bytes);
        steps = own > steps ? own : steps;
        store_aligned(kept.segments[i].next, load_aligned(kept.segments[i].state));
    }
    // All lanes of a warp take the same number of steps, because they must stay together.
    for (u32 flip = 16; flip > 0; flip /= 2) {
        u64 other = __shfl_xor_sync(0xFFFFFFFF, steps, flip);
        steps = other > steps ? other : steps;
    }
    kept.steps = steps;
    if (kept.here == 0) return;
    auto takes_part = [&](u32 row, u64 step) {
        return row < reread(kept.here) && step < steps_of(reread(kept.chain), reread(kept.segments)[row].bytes);
    };
    State state;
#pragma unroll 1
    for (kept.step = 0; reread(kept.step) < reread(kept.steps); kept.step = reread(kept.step) + 1) {
        // The inputs and outputs of the cipher are passed through Segment::state. So the code of the modes and the code of the
        // rounds can each use all registers.
        u64 step = reread(kept.step);
#pragma unroll 1
        for (u32 row = 0; row < reread(kept.here); row++) {
            Segment &segment = reread(kept.segments)[row];
            if (takes_part(row, step)) store_aligned(segment.state, input(reread(kept.chain), segment, step));
        }
        fill<true>(state, [&](u32 row) {
            return row < reread(kept.here) ? load_aligned(reread(kept.segments)[row].state) : u32x4{0, 0, 0, 0};
        });
        transpose(state);
        add(state, Planes{reread(kept.planes)});
#pragma unroll 1
        for (u32 round = 1; round < rounds_of(launch); round++) {
            Planes planes = Planes{reread(kept.planes)}.round(round);
            if (Decrypt) decrypt_round(state, planes); else encrypt_round(state, planes);
        }
#pragma unroll
        for (u32 p = 0; p < 16; p++) {
            if (Decrypt) inverse_sbox(state.of[p]); else sbox(state.of[p]);
        }
        shift_rows<Decrypt ? 3 : 1>(state);
        add(state, Planes{reread(kept.planes)}.round(rounds_of(launch)));
        transpose(state);
        drain<true, false>(state, [&](u32 row, const Group &group) {
#pragma unroll
            for (u32 i = 0; i < 4; i++)
                if (row + i < reread(kept.here)) store_aligned(reread(kept.segments)[row + i].state, group.block[i]);
        });
        step = reread(kept.step);
#pragma unroll 1
        for (u32 row = 0; row < reread(kept.here); row++) {
            Segment &segment = reread(kept.segments)[row];
            if (takes_part(row, step)) output(reread(kept.chain), segment, step, load_aligned(segment.state));
        }
    }
}

}  // namespace

EXPORT(chain_messages, messages);
EXPORT(chain_lanes, lanes);

// Makes the planes of all messages' round keys in launch.scratch, which has 512 bytes for each round key and thread, for
// whole warps.
KERNEL_BOUNDS(chain_keys, lanes, 8, (Launch launch, u32 schedule_bytes)) {
    u64 thread = (u64)blockIdx.x * lanes + threadIdx.x, first = messages * thread;
    if (first >= launch.count) return;
    u32 rounds = rounds_of(launch);
    bool decrypts = (launch.option & 0xFF) == PCBC_DECRYPT;
    State state;
#pragma unroll 1
    for (u32 round = 0; round <= rounds; round++) {
        fill<false>(state, [&](u32 row) {
            if (first + row >= launch.count) return u32x4{0, 0, 0, 0};
            const u8 *schedule = launch.schedules + (u64)launch.segments[first + row].key * schedule_bytes;
            return load_aligned(schedule + (decrypts ? schedule_bytes / 2 : 0) + 16 * round);
        });
        transpose(state);
        Planes planes = planes_of(launch, thread).round(round);
#pragma unroll
        for (u32 p = 0; p < 16; p++)
#pragma unroll
            for (u32 i = 0; i < 8; i++) planes.plane(8 * p + i) = state.of[p][i];
    }
}

KERNEL_BOUNDS(chain_encrypt, lanes, 8, (Launch launch)) { run<false>(launch); }
KERNEL_BOUNDS(chain_decrypt, lanes, 8, (Launch launch)) { run<true>(launch); }
