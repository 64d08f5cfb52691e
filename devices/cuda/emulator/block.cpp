#include "block.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "registry.h"

namespace emulator {

__thread Thread *here;

bool Place::operator==(const Place &other) const {
    return line == other.line && (file == other.file || strcmp(file, other.file) == 0);
}

namespace {

// Bytes between arrays in shared memory. They have a pattern, which a write beyond the end of an array changes.
constexpr size_t GAP = 64;
constexpr unsigned char PATTERN = 0xA5;

// The memory for arrays of fixed size, including their gaps.
constexpr size_t SHARED_ROOM = MAX_STATIC_SHARED + 32 * (GAP + 16);

size_t with_gap(size_t bytes) { return (bytes + 15) / 16 * 16 + GAP; }

// True if the mask has the lane of the thread.
bool in_mask(const Thread &thread, uint32_t mask) { return mask >> thread.index.x % 32 & 1; }

Thread *warp_of(Thread &thread, uint32_t &lanes) {
    Block &block = *thread.block;
    uint32_t first = thread.index.x / 32 * 32;
    lanes = block.size.x - first < 32 ? block.size.x - first : 32;
    return &block.threads[first];
}

// Adds the product of the matrices that the lanes of a warp hold. `value` of a lane is the address of its ProductOfBits.
void add_product(Thread *warp) {
    const ProductOfBits *lanes[32];
    for (uint32_t i = 0; i < 32; i++) lanes[i] = reinterpret_cast<const ProductOfBits *>(warp[i].value);
    for (uint32_t row = 0; row < 16; row++) {
        for (uint32_t column = 0; column < 8; column++) {
            uint32_t ones = 0;
            for (uint32_t t = 0; t < 4; t++) {
                const uint32_t *left = lanes[4 * (row % 8) + t]->left, *right = lanes[4 * column + t]->right;
                uint64_t low = left[row / 8] & right[0], high = left[2 + row / 8] & right[1];
                ones += static_cast<uint32_t>(__builtin_popcountll(high << 32 | low));
            }
            lanes[4 * (row % 8) + column / 2]->sums[2 * (row / 8) + column % 2] += ones;
        }
    }
}

// If all lanes of the mask wait at the same place, gives each lane its result, lets it continue, and returns true.
bool release_warp(Thread &last) {
    uint32_t lanes;
    Thread *warp = warp_of(last, lanes);
    uint32_t ballot = 0;
    for (uint32_t i = 0; i < lanes; i++) {
        const Thread &lane = warp[i];
        if (!in_mask(lane, last.mask)) continue;
        bool waits = lane.state == State::at_warp && lane.mask == last.mask;
        if (!waits || lane.exchange != last.exchange || !(lane.place == last.place)) return false;
        if (lane.value) ballot |= 1u << i;
    }
    uint32_t mask = last.mask;
    if (last.exchange == Exchange::product) {
        // All 32 lanes take part, as ".aligned" requires.
        if (lanes < 32) return false;
        add_product(warp);
    }
    for (uint32_t i = 0; i < lanes; i++) {
        Thread &lane = warp[i];
        if (!in_mask(lane, mask)) continue;
        if (lane.exchange == Exchange::ballot) lane.result = ballot;
        if (lane.exchange == Exchange::shuffle) {
            // The value of a source outside the mask is undefined, so a program must not use it.
            bool there = lane.source < lanes && (mask >> lane.source & 1);
            lane.result = there ? warp[lane.source].value : 0xDEADDEADDEADDEAD;
        }
    }
    for (uint32_t i = 0; i < lanes; i++)
        if (in_mask(warp[i], mask)) warp[i].state = State::ready;
    return true;
}

void describe_divergence(const Block &block) {
    // A thread that waits, and a thread that does not wait with it.
    const Thread *waits = nullptr, *other = nullptr;
    for (uint32_t i = 0; i < block.size.x && !waits; i++)
        if (block.threads[i].state != State::finished) waits = &block.threads[i];
    if (!waits) return;
    for (uint32_t i = 0; i < block.size.x && !other; i++) {
        const Thread &thread = block.threads[i];
        bool with_it = thread.state == waits->state && thread.place == waits->place && thread.mask == waits->mask;
        if (!with_it) other = &thread;
    }
    char what[300] = "the others are not all there";
    if (other && other->state == State::finished) snprintf(what, sizeof what, "thread %u has ended", other->index.x);
    if (other && other->state != State::finished)
        snprintf(what, sizeof what, "thread %u waits at %s:%d", other->index.x, other->place.file, other->place.line);
    describe_error("barrier divergence in %s: thread %u of block %u waits at %s:%d, but %s", block.kernel->name,
                   waits->index.x, block.index.x, waits->place.file, waits->place.line, what);
}

// If the whole block waits at one place, gives each thread its result, lets it continue, and returns true. Sets the error
// of the block if threads wait at different places.
bool release_block(Block &block, uint64_t predicate) {
    block.waiting++;
    block.true_predicates += predicate != 0;
    if (block.waiting < block.size.x) return false;
    for (uint32_t i = 0; i < block.size.x; i++) {
        if (block.threads[i].place == block.threads[0].place) continue;
        describe_divergence(block);
        block.error = DIVERGENCE;
        return false;
    }
    for (uint32_t i = 0; i < block.size.x; i++) {
        block.threads[i].result = block.true_predicates;
        block.threads[i].state = State::ready;
    }
    block.waiting = 0;
    block.true_predicates = 0;
    return true;
}

void set_up(Block &block) {
    for (uint32_t i = 0; i < block.size.x; i++) {
        Thread &thread = block.threads[i];
        thread.index = {i, 0, 0};
        thread.block = &block;
        thread.state = State::fresh;
    }
    block.waiting = 0;
    block.true_predicates = 0;
    block.error = NO_ERROR;
    // Programs must not use what the previous block left in the memory.
    memset(block.dynamic, PATTERN, block.dynamic_bytes + GAP);
    block.array_count = 0;
    block.shared_used = 0;
}

bool gap_is_whole(const unsigned char *gap) {
    for (size_t i = 0; i < GAP; i++)
        if (gap[i] != PATTERN) return false;
    return true;
}

void check_shared(Block &block) {
    bool whole = gap_is_whole(block.dynamic + block.dynamic_bytes);
    for (uint32_t i = 0; i < block.array_count; i++)
        whole &= gap_is_whole(block.shared + block.arrays[i].offset + with_gap(block.arrays[i].bytes) - GAP);
    if (whole) return;
    describe_error("%s wrote over the end of an array in shared memory", block.kernel->name);
    block.error = SHARED_OVERRUN;
}

Block *free_blocks;
pthread_mutex_t free_blocks_lock = PTHREAD_MUTEX_INITIALIZER;

Block *new_block() {
    Block *block = static_cast<Block *>(calloc(1, sizeof(Block)));
    if (!block) return nullptr;
    void *shared = nullptr;
    // Kernels declare dynamic shared memory with an alignment of 1024 bytes.
    if (posix_memalign(&shared, 1024, SHARED_ROOM + MAX_SHARED + GAP) != 0) {
        free(block);
        return nullptr;
    }
    block->dynamic = static_cast<unsigned char *>(shared);
    block->shared = block->dynamic + MAX_SHARED + GAP;
    return block;
}

}  // namespace

// The code never waits for the locks of the lists of free blocks and stacks. If a process is forked while another thread
// holds such a lock, the lock is never released in the child.
Block *take_block() {
    if (pthread_mutex_trylock(&free_blocks_lock) != 0) return new_block();
    Block *block = free_blocks;
    if (block) free_blocks = block->next_free;
    pthread_mutex_unlock(&free_blocks_lock);
    return block ? block : new_block();
}

void give_block(Block *block) {
    if (pthread_mutex_trylock(&free_blocks_lock) != 0) {
        free(block->dynamic);
        free(block);
        return;
    }
    block->next_free = free_blocks;
    free_blocks = block;
    pthread_mutex_unlock(&free_blocks_lock);
}

void *dynamic_shared() { return here->block->dynamic; }

#ifdef LOCKSTEP_EMULATOR_THREADS

// Each CUDA thread is a thread of the operating system. As on a device, only barriers order these threads. For this reason,
// each warp has its own lock.
namespace {

struct Meeting {
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t released = PTHREAD_COND_INITIALIZER;
};
Meeting block_meeting, warp_meeting[MAX_THREADS / 32], array_meeting;

void wait_for_release(Meeting &meeting, Thread &thread) {
    timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += 60;
    while (thread.state != State::ready) {
        if (thread.block->error == NO_ERROR && pthread_cond_timedwait(&meeting.released, &meeting.lock, &deadline) == 0) continue;
        fprintf(stderr, "barrier divergence: thread %u waits at %s:%d\n", thread.index.x, thread.place.file, thread.place.line);
        abort();
    }
}

void *run_thread(void *argument) {
    here = static_cast<Thread *>(argument);
    here->block->kernel->call(here->block->kernel->function, here->block->params);
    return nullptr;
}

}  // namespace

uint64_t meet_block(Place place, int predicate) {
    Thread &thread = *here;
    pthread_mutex_lock(&block_meeting.lock);
    thread.place = place;
    thread.state = State::at_block;
    if (release_block(*thread.block, predicate != 0)) pthread_cond_broadcast(&block_meeting.released);
    else wait_for_release(block_meeting, thread);
    pthread_mutex_unlock(&block_meeting.lock);
    return thread.result;
}

uint64_t meet_warp(Place place, Exchange exchange, uint32_t mask, uint64_t value, uint32_t source) {
    Thread &thread = *here;
    Meeting &meeting = warp_meeting[thread.index.x / 32];
    pthread_mutex_lock(&meeting.lock);
    thread.place = place;
    thread.exchange = exchange;
    thread.mask = mask;
    thread.value = value;
    thread.source = source;
    thread.state = State::at_warp;
    if (release_warp(thread)) pthread_cond_broadcast(&meeting.released);
    else wait_for_release(meeting, thread);
    pthread_mutex_unlock(&meeting.lock);
    return thread.result;
}

bool run_block(Block &block) {
    set_up(block);
    static pthread_t threads[MAX_THREADS];
    for (uint32_t i = 0; i < block.size.x; i++)
        if (pthread_create(&threads[i], nullptr, run_thread, &block.threads[i]) != 0) abort();
    for (uint32_t i = 0; i < block.size.x; i++) pthread_join(threads[i], nullptr);
    if (block.error == NO_ERROR) check_shared(block);
    return block.error == NO_ERROR;
}

#else

namespace {

// The context of the scheduler of this thread of the operating system.
__thread void *scheduler;

// Stacks outlive the threads of the operating system that ran on them.
struct FreeStack {
    FreeStack *next;
};
FreeStack *free_stacks;
uint32_t free_stack_count;
pthread_mutex_t free_stacks_lock = PTHREAD_MUTEX_INITIALIZER;

// A thread that finds the lock taken makes a new stack. If the holder of the lock is preempted, this happens for a whole
// block, and the stacks are given back later: without a limit, the list would grow to the number of mappings that the system
// allows a process.
constexpr uint32_t MAX_FREE_STACKS = 4 * MAX_THREADS;

// The link of the list is at the top of the stack, in a page that every fiber uses.
FreeStack *link_of(void *stack) { return reinterpret_cast<FreeStack *>(static_cast<char *>(stack) + STACK_BYTES) - 1; }

void *take_stack() {
    if (pthread_mutex_trylock(&free_stacks_lock) != 0) return new_stack();
    FreeStack *link = free_stacks;
    if (link) {
        free_stacks = link->next;
        free_stack_count--;
    }
    pthread_mutex_unlock(&free_stacks_lock);
    return link ? reinterpret_cast<char *>(link + 1) - STACK_BYTES : new_stack();
}

void give_stack(void *stack) {
    if (pthread_mutex_trylock(&free_stacks_lock) != 0) return free_stack(stack);
    bool is_kept = free_stack_count < MAX_FREE_STACKS;
    if (is_kept) {
        FreeStack *link = link_of(stack);
        link->next = free_stacks;
        free_stacks = link;
        free_stack_count++;
    }
    pthread_mutex_unlock(&free_stacks_lock);
    if (!is_kept) free_stack(stack);
}

// Switches to the scheduler, which later continues this thread.
void leave() { switch_context(&here->context, scheduler); }

void run_thread() {
    here->block->kernel->call(here->block->kernel->function, here->block->params);
    here->state = State::finished;
    leave();
}

// Runs a thread until it waits or ends. `spare` is a stack for threads that start. Most of these threads end on this stack,
// and leave it for the next one.
bool run(Thread &thread, void *&spare) {
    if (thread.state == State::fresh) {
        if (!spare) spare = take_stack();
        if (!spare) {
            describe_error("no memory for the stack of a thread");
            thread.block->error = NO_MEMORY;
            return false;
        }
        thread.stack = spare;
        spare = nullptr;
        thread.context = new_context(thread.stack, run_thread);
        thread.state = State::ready;
    }
    here = &thread;
    switch_context(&scheduler, thread.context);
    if (thread.state != State::finished) return false;
    if (spare) give_stack(spare);
    spare = thread.stack;
    thread.stack = nullptr;
    return true;
}

}  // namespace

uint64_t meet_block(Place place, int predicate) {
    Thread &thread = *here;
    thread.place = place;
    thread.state = State::at_block;
    if (!release_block(*thread.block, predicate != 0)) leave();
    return thread.result;
}

uint64_t meet_warp(Place place, Exchange exchange, uint32_t mask, uint64_t value, uint32_t source) {
    Thread &thread = *here;
    thread.place = place;
    thread.exchange = exchange;
    thread.mask = mask;
    thread.value = value;
    thread.source = source;
    thread.state = State::at_warp;
    if (!release_warp(thread)) leave();
    return thread.result;
}

bool run_block(Block &block) {
    set_up(block);
    void *spare = nullptr;
    uint32_t left = block.size.x;
    bool progress = true;
    while (left && progress && block.error == NO_ERROR) {
        progress = false;
        for (uint32_t first = 0; first < block.size.x; first += 32) {
            // The threads of a warp run until all of them wait or have ended. Then the next warp runs.
            uint32_t end = first + 32 < block.size.x ? first + 32 : block.size.x;
            for (bool ran = true; ran && block.error == NO_ERROR;) {
                ran = false;
                for (uint32_t i = first; i < end && block.error == NO_ERROR; i++) {
                    Thread &thread = block.threads[i];
                    if (thread.state > State::ready) continue;
                    left -= run(thread, spare);
                    ran = progress = true;
                }
            }
        }
    }
    if (left && block.error == NO_ERROR) {
        describe_divergence(block);
        block.error = DIVERGENCE;
    }
    // Threads that still wait are not continued. This leaks nothing, because kernels own nothing that must be freed.
    for (uint32_t i = 0; left && i < block.size.x; i++) {
        Thread &thread = block.threads[i];
        if (thread.state != State::fresh && thread.stack) give_stack(thread.stack);
        thread.stack = nullptr;
    }
    if (spare) give_stack(spare);
    here = nullptr;
    if (block.error == NO_ERROR) check_shared(block);
    return block.error == NO_ERROR;
}

#endif

void *shared_array(const void *key, size_t bytes) {
    Block &block = *here->block;
#ifdef LOCKSTEP_EMULATOR_THREADS
    pthread_mutex_lock(&array_meeting.lock);
#endif
    uint32_t i = 0;
    while (i < block.array_count && block.arrays[i].key != key) i++;
    if (i == block.array_count) {
        if (i == sizeof block.arrays / sizeof block.arrays[0] || block.shared_used + with_gap(bytes) > SHARED_ROOM) {
            // CUDA's compiler does not accept such a program.
            fprintf(stderr, "%s: too much static shared memory\n", block.kernel->name);
            abort();
        }
        block.arrays[i] = {key, block.shared_used, bytes};
        memset(block.shared + block.shared_used, PATTERN, with_gap(bytes));
        block.shared_used += with_gap(bytes);
        block.array_count++;
    }
    void *array = block.shared + block.arrays[i].offset;
#ifdef LOCKSTEP_EMULATOR_THREADS
    pthread_mutex_unlock(&array_meeting.lock);
#endif
    return array;
}

}  // namespace emulator
