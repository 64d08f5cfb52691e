// The words that every kernel is written in: under nvcc and NVRTC those of CUDA, elsewhere those of emulator/.
//
// No standard header is included when CUDA compiles: NVRTC has none.
//
//   KERNEL(name, (params)) { ... }                    an entry point
//   KERNEL_BOUNDS(name, threads, blocks, (params))    one that promises at most `threads` a block and wants `blocks` of
//                                                     them to fit on a multiprocessor (0: no wish)
//   SHARED(type, name, count);                        an array in shared memory, of 16-byte alignment
//   DYNAMIC_SHARED(type, name);                       a pointer to the launch's dynamic shared memory
//   EXPORT(name, value);                              a number that a test compares with src/kernel.rs
//
// __device__, __constant__ (give it its const), __forceinline__, __noinline__ and the intrinsics are spelled as in
// CUDA; emulator/cuda.h lists those it knows. `#pragma unroll` is ignored where it means nothing.
#pragma once

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
static_assert(sizeof(u16) == 2 && sizeof(u32) == 4 && sizeof(u64) == 8, "the ABI of work.cuh");

// What one 128-bit access moves.
struct alignas(16) u32x4 {
    u32 x, y, z, w;
};

#if defined(__CUDACC__)

#define KERNEL(name, params) extern "C" __global__ void name params
// A bound of 0 blocks is no bound: __launch_bounds__ takes it so.
#define KERNEL_BOUNDS(name, threads, blocks, params) \
    extern "C" __global__ void __launch_bounds__(threads, blocks) name params
#define SHARED(type, name, count) __shared__ __align__(16) type name[count]
#define DYNAMIC_SHARED(type, name)                               \
    extern __shared__ __align__(1024) unsigned char dynamic_shared[]; \
    type *const name = reinterpret_cast<type *>(dynamic_shared)
#define EXPORT(name, value) static_assert(sizeof(value) != 0, "a number")

#else

#include "../../emulator/cuda.h"

#define KERNEL(name, params) EMULATOR_KERNEL(name, 1024, params)
#define KERNEL_BOUNDS(name, threads, blocks, params) EMULATOR_KERNEL(name, threads, params)
#define SHARED(type, name, count)                         \
    type(&name)[count] = ::emulator::shared<type, count>( \
        []() -> const void * {                            \
            static char key;                              \
            return &key;                                  \
        }())
#define DYNAMIC_SHARED(type, name) type *const name = static_cast<type *>(::emulator::dynamic_shared())
#define EXPORT(name, value) EMULATOR_EXPORT(name, value)

#endif
