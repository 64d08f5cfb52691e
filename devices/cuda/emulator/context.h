// Fibers: their stacks, and functions that switch from one fiber to another.
#pragma once
#include <stddef.h>

namespace emulator {

// The size of a stack. The system allocates its pages when they are used. The lowest page is a guard page, which ends the
// program if the stack overflows. The size is not a power of 2: stacks follow each other in memory, and their tops would
// otherwise share a few sets of the cache.
constexpr size_t STACK_BYTES = 260 * 1024;

// Returns the lowest address of a new stack, or null if there is no memory.
void *new_stack();
void free_stack(void *stack);

// Makes a context on this stack. A switch to the context calls `entry`, which must not return.
void *new_context(void *stack, void (*entry)());

// Saves the running context in *from and continues `to`.
void switch_context(void **from, void *to);

}  // namespace emulator
