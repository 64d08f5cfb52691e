// A block of CUDA threads, and the barriers at which its threads wait.
//
// Each CUDA thread is a fiber. The threads of a block share one thread of the operating system. They run one after the
// other, each until it ends or waits (block.cpp). With LOCKSTEP_EMULATOR_THREADS, each CUDA thread is a thread of the
// operating system instead, so that ThreadSanitizer can detect races between them.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace emulator {

struct Block;
struct Kernel;

// The place of a barrier in the source.
struct Place {
    const char *file;
    int line;
    bool operator==(const Place &other) const;
};

struct Index {
    uint32_t x, y, z;
};

enum class State : uint8_t {
    fresh,     // not started
    ready,     // may go on
    at_block,  // waits for the block
    at_warp,   // waits for lanes of its warp
    finished,
};

// The operation by which the lanes of a warp exchange data.
enum class Exchange : uint8_t { none, ballot, shuffle, product };

// The operands of a lane in a product of matrices of bits, and the place of the lane's part of the sums (kernels/common/tensor.cuh).
struct ProductOfBits {
    uint32_t *sums;
    const uint32_t *left, *right;
};

// One CUDA thread.
struct Thread {
    Index index;  // threadIdx
    Block *block;
    State state;
    // While the thread waits: the barrier, the operation, the participating lanes, and the lane whose value it reads.
    Place place;
    Exchange exchange;
    uint32_t mask;
    uint32_t source;
    uint64_t value;
    uint64_t result;
    // The context of the fiber.
    void *context;
    void *stack;
};

constexpr uint32_t MAX_THREADS = 1024;
// CUDA's limit for arrays of fixed size, and the limit of sm_90 for all shared memory of a thread block.
constexpr size_t MAX_STATIC_SHARED = 48 * 1024;
constexpr size_t MAX_SHARED = 227 * 1024;
// The maximum size of a kernel's parameters, in bytes.
constexpr size_t MAX_PARAMS = 4096;

// An array in shared memory. It is identified by the address of a variable that belongs to its declaration.
struct SharedArray {
    const void *key;
    size_t offset;
    size_t bytes;
};

// An access that a kernel traces (TRACE in kernels/common/platform.cuh).
enum class Traced : uint32_t { lookup, load, store };

// The function that receives the accesses of a traced launch, and its first argument. The function is null if the launch is not traced.
struct Trace {
    void (*record)(const void *context, Traced kind, uint64_t address, uint32_t bytes, uint32_t block, uint32_t thread);
    const void *context;
};

struct Block {
    Index index, size, grid;  // blockIdx, blockDim, gridDim
    const Kernel *kernel;
    const unsigned char *params;
    Trace trace;
    Thread threads[MAX_THREADS];
    Block *next_free;
    uint32_t waiting;  // threads at the block's barrier
    uint32_t true_predicates;
    int32_t error;
    unsigned char *shared;  // memory for the arrays of fixed size (SHARED_ROOM bytes)
    SharedArray arrays[32];
    uint32_t array_count;
    size_t shared_used;
    unsigned char *dynamic;
    size_t dynamic_bytes;
};

// The CUDA thread that runs on this thread of the operating system.
extern __thread Thread *here;

// Passes an access to the trace of the launch, if it has one.
inline void trace(Traced kind, const void *address, uint32_t bytes) {
    const Block &block = *here->block;
    if (!block.trace.record) return;
    block.trace.record(block.trace.context, kind, reinterpret_cast<uintptr_t>(address), bytes, block.index.x, here->index.x);
}

// Does the work of __syncthreads and its variants. Returns the number of threads whose predicate was not 0.
uint64_t meet_block(Place place, int predicate);
// Does the work of __syncwarp, ballots and shuffles among the lanes of the mask.
uint64_t meet_warp(Place place, Exchange exchange, uint32_t mask, uint64_t value, uint32_t source);

void *shared_array(const void *key, size_t bytes);
void *dynamic_shared();

template <class T, size_t COUNT>
T (&shared(const void *key))[COUNT] {
    return *static_cast<T(*)[COUNT]>(shared_array(key, sizeof(T) * COUNT));
}

// A block whose fields the caller must set; null if there is no memory. Its memory is kept for later blocks.
Block *take_block();
void give_block(Block *block);
// Runs the threads of a block whose fields up to `trace` are set. Returns true unless it sets `error`.
bool run_block(Block &block);

// Errors of lockstep_emu_launch.
enum Error : int32_t {
    NO_ERROR = 0,
    NO_SUCH_KERNEL = 1,
    WRONG_PARAMS = 2,
    WRONG_SHAPE = 3,
    DIVERGENCE = 4,
    NO_MEMORY = 5,
    SHARED_OVERRUN = 6,
};
// Sets the description of the latest error. If several blocks fail, the first description is kept.
void describe_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace emulator
