// The interface to Rust: kernels by name, launches, and descriptions of errors.
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "block.h"
#include "registry.h"

namespace emulator {

const Kernel *kernels;
const Constant *constants;

Constant::Constant(const char *name, uint64_t value) : name(name), value(value), next(constants) { constants = this; }

namespace {

struct Grid {
    const Kernel *kernel;
    const unsigned char *params;
    uint32_t blocks, threads;
    size_t dynamic_shared;
    Trace trace;
    uint32_t next;
    int32_t error;
    char words[400];
};

// The grid to which describe_error writes, and the description of the latest error of a launch from this thread.
__thread Grid *current;
__thread char words[400];
pthread_mutex_t words_lock = PTHREAD_MUTEX_INITIALIZER;

uint64_t microseconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

// Runs blocks of the grid until there are none left, or until the deadline.
void run_blocks(Grid &grid, uint64_t deadline) {
    current = &grid;
    Block *block = take_block();
    if (!block) {
        describe_error("no memory for a block of threads");
        __atomic_store_n(&grid.error, NO_MEMORY, __ATOMIC_RELAXED);
        return;
    }
    block->kernel = grid.kernel;
    block->params = grid.params;
    block->trace = grid.trace;
    block->size = {grid.threads, 1, 1};
    block->grid = {grid.blocks, 1, 1};
    block->dynamic_bytes = grid.dynamic_shared;
    while (__atomic_load_n(&grid.error, __ATOMIC_RELAXED) == NO_ERROR) {
        uint32_t index = __atomic_fetch_add(&grid.next, 1, __ATOMIC_RELAXED);
        if (index >= grid.blocks) break;
        block->index = {index, 0, 0};
        if (!run_block(*block)) __atomic_store_n(&grid.error, block->error, __ATOMIC_RELAXED);
        if (deadline && microseconds() > deadline) break;
    }
    give_block(block);
    current = nullptr;
}

#ifdef LOCKSTEP_EMULATOR_THREADS

// Each CUDA thread is a thread of the operating system, and one block runs at a time.
void run_grid(Grid &grid) { run_blocks(grid, 0); }

#else

void *help(void *grid) {
    run_blocks(*static_cast<Grid *>(grid), 0);
    return nullptr;
}

uint32_t processors() {
#ifdef __linux__
    // The processors that this process may use.
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<uint32_t>(CPU_COUNT(&set));
#endif
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? static_cast<uint32_t>(count) : 1;
}

void run_grid(Grid &grid) {
    // The accesses of a trace are in the order of the thread blocks.
    if (grid.trace.record) return run_blocks(grid, 0);
    // A launch that takes no longer than the start of some threads needs no helpers.
    run_blocks(grid, microseconds() + 200);
    if (grid.next >= grid.blocks || grid.error != NO_ERROR) return;
    constexpr uint32_t MOST = 64;
    pthread_t helpers[MOST];
    uint32_t count = 0, wanted = processors(), left = grid.blocks - grid.next;
    if (wanted > left) wanted = left;
    if (wanted > MOST) wanted = MOST;
    // If no helper can be started, this thread does all of the work.
    while (count + 1 < wanted && pthread_create(&helpers[count], nullptr, help, &grid) == 0) count++;
    run_blocks(grid, 0);
    for (uint32_t i = 0; i < count; i++) pthread_join(helpers[i], nullptr);
}

#endif

const Kernel *find(const char *name) {
    const Kernel *kernel = kernels;
    while (kernel && strcmp(kernel->name, name) != 0) kernel = kernel->next;
    return kernel;
}

int32_t refuse(int32_t error, const char *format, const char *name) {
    snprintf(words, sizeof words, format, name);
    return error;
}

int32_t launch(const char *name, Trace trace, uint32_t first, uint32_t grid_x, uint32_t block_x, uint32_t dynamic_shared,
               const void *params, size_t params_len) {
    const Kernel *kernel = find(name);
    if (!kernel) return refuse(NO_SUCH_KERNEL, "no kernel %s", name);
    // A structure that ends in a smaller member is followed by padding.
    bool fits = params_len >= kernel->params_len && params_len < kernel->params_len + 16 && params_len <= MAX_PARAMS;
    if (!fits) return refuse(WRONG_PARAMS, "wrong length of the parameters of %s", name);
    bool good_shape = grid_x != 0 && grid_x <= 0x7FFFFFFF && block_x != 0 && block_x <= kernel->max_threads;
    if (!good_shape || dynamic_shared > MAX_SHARED) return refuse(WRONG_SHAPE, "%s cannot be launched in this shape", name);
    __atomic_fetch_add(&kernel->launches, 1, __ATOMIC_RELAXED);
    // Copies the parameters, as a driver does, so that the caller may change them.
    alignas(16) unsigned char copy[MAX_PARAMS];
    memcpy(copy, params, kernel->params_len);
    Grid grid = {kernel, copy, grid_x, block_x, dynamic_shared, trace, first, NO_ERROR, ""};
    run_grid(grid);
    if (grid.error != NO_ERROR) memcpy(words, grid.words, sizeof words);
    return grid.error;
}

}  // namespace

void describe_error(const char *format, ...) {
    if (!current) return;
    pthread_mutex_lock(&words_lock);
    if (!current->words[0]) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(current->words, sizeof current->words, format, arguments);
        va_end(arguments);
    }
    pthread_mutex_unlock(&words_lock);
}

}  // namespace emulator

using namespace emulator;

extern "C" {

const char *lockstep_emu_kernel(uint32_t index) {
    const Kernel *kernel = kernels;
    while (kernel && index--) kernel = kernel->next;
    return kernel ? kernel->name : nullptr;
}

// The number of launches of a kernel in this process, including launches that failed.
uint64_t lockstep_emu_launches(const char *name) {
    const Kernel *kernel = find(name);
    return kernel ? __atomic_load_n(&kernel->launches, __ATOMIC_RELAXED) : 0;
}

// Returns true, and the value, if a kernel exports a number with this name.
int32_t lockstep_emu_constant(const char *name, uint64_t *value) {
    for (const Constant *constant = constants; constant; constant = constant->next) {
        if (strcmp(constant->name, name) != 0) continue;
        *value = constant->value;
        return 1;
    }
    return 0;
}

// Runs only the thread blocks from `first` on, so that tests can reach the end of grids that are too large for the emulator.
int32_t lockstep_emu_launch_from(const char *name, uint32_t first, uint32_t grid_x, uint32_t block_x, uint32_t dynamic_shared,
                                 const void *params, size_t params_len) {
    return launch(name, Trace{}, first, grid_x, block_x, dynamic_shared, params, params_len);
}

// Runs a grid. If `record` is not null, the accesses that the kernel traces are passed to it.
int32_t lockstep_emu_launch(const char *name, uint32_t grid_x, uint32_t block_x, uint32_t dynamic_shared, const void *params,
                            size_t params_len, decltype(Trace::record) record, const void *context) {
    return launch(name, Trace{record, context}, 0, grid_x, block_x, dynamic_shared, params, params_len);
}

// Describes the result of the latest launch from the calling thread. The text is valid until the next launch from this
// thread.
const char *lockstep_emu_error(int32_t error) { return error == NO_ERROR ? "no error" : words; }

}
