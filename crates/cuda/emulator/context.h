// Fibers: stacks, and the switch from one to another.
#pragma once
#include <stddef.h>

namespace emulator {

// Of a fiber. Pages are touched only when used; the lowest is a guard that ends a program whose fiber digs too deep.
// Not a power of 2: stacks follow each other in memory, and their tops would share a few sets of the cache.
constexpr size_t STACK_BYTES = 260 * 1024;

// The lowest address of a new stack; null if memory is short.
void *new_stack();
void free_stack(void *stack);

// A context that calls `entry` on this stack when it is switched to. The function must not return.
void *new_context(void *stack, void (*entry)());

// Saves the context that runs in *from and goes on with another.
void switch_context(void **from, void *to);

}  // namespace emulator
