// Entry points of a shape, for all passes and key sizes.
#pragma once
#include "ocb.cuh"
#include "passes.cuh"

// A thread block has 32 threads. With 8 thread blocks on a multiprocessor, each thread can have 255 registers.
#define PASS(family, shape, pass, bits) \
    KERNEL_BOUNDS(family##_##pass##_##bits, 32, 8, (Launch launch)) { run<Pass::pass, bits, shape>(launch); }
#define OCB(family, shape, name, encrypts, bits)                                                       \
    KERNEL_BOUNDS(family##_##name##_##bits, 32, 8, (Launch launch, const OcbMasks *masks)) { \
        run_ocb<encrypts, bits, shape>(launch, masks);                                                 \
    }
#define PASSES(family, shape, bits)                                                       \
    PASS(family, shape, ecb_encrypt, bits) PASS(family, shape, ecb_decrypt, bits)         \
    PASS(family, shape, ctr, bits) PASS(family, shape, ctr32, bits)                       \
    PASS(family, shape, ctr_little32, bits)                                               \
    PASS(family, shape, cbc_decrypt, bits) PASS(family, shape, cfb_decrypt, bits)         \
    PASS(family, shape, xts_encrypt, bits) PASS(family, shape, xts_decrypt, bits)         \
    OCB(family, shape, ocb_encrypt, true, bits) OCB(family, shape, ocb_decrypt, false, bits)
#define ENTRY_POINTS(family, shape) PASSES(family, shape, 128) PASSES(family, shape, 192) PASSES(family, shape, 256)
