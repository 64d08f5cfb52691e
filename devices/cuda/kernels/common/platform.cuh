// Macros and types of all kernels. nvcc and NVRTC use the definitions of CUDA; other compilers use those of emulator/.
//
// No standard header is included when CUDA's compilers are used, because NVRTC has none.
//
//   KERNEL(name, (params)) { ... }                    an entry point
//   KERNEL_BOUNDS(name, threads, blocks, (params))    an entry point with at most `threads` threads in a block; the
//                                                     compiler lets `blocks` blocks fit on a multiprocessor (0: no limit)
//   SHARED(type, name, count);                        an array in shared memory, of 16-byte alignment
//   DYNAMIC_SHARED(type, name);                       a pointer to the dynamic shared memory of the launch
//   EXPORT(name, value);                              a number that a test compares with src/kernel.rs
//   TRACE(kind, pointer, bytes);                      an access for the traces of the emulator (src/machine/emulator/trace.rs);
//                                                     no code on a GPU
//
// __device__, __constant__ (with an additional const), __forceinline__, __noinline__ and the intrinsics are written as
// in CUDA; emulator/cuda.h has the supported ones. Compilers that do not support `#pragma unroll` ignore it.
#pragma once

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
static_assert(sizeof(u16) == 2 && sizeof(u32) == 4 && sizeof(u64) == 8, "the ABI of work.cuh");

// The data of one access of 128 bits.
struct alignas(16) u32x4 {
    u32 x, y, z, w;
};

#if defined(__CUDACC__)

#define KERNEL(name, params) extern "C" __global__ void name params
// __launch_bounds__ ignores a bound of 0 blocks.
#define KERNEL_BOUNDS(name, threads, blocks, params) \
    extern "C" __global__ void __launch_bounds__(threads, blocks) name params
#define SHARED(type, name, count) __shared__ __align__(16) type name[count]
#define DYNAMIC_SHARED(type, name)                               \
    extern __shared__ __align__(1024) unsigned char dynamic_shared[]; \
    type *const name = reinterpret_cast<type *>(dynamic_shared)
#define EXPORT(name, value) static_assert(sizeof(value) != 0, "a number")
#define TRACE(kind, pointer, bytes) static_cast<void>(0)

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
#define TRACE(kind, pointer, bytes) ::emulator::trace(::emulator::Traced::kind, pointer, bytes)

#endif
