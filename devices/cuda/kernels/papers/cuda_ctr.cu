// The four kernels of the CUDA paper (AES-CTR on the GeForce 8): coarse or fine grain, T-boxes in shared or in constant
// memory. A thread block has 8 to 512 threads.
//
// Dynamic shared memory has 4096 bytes for the T-boxes, if they are in shared memory, and then the state: 16 bytes per
// thread in the coarse kernels, and 8 in the fine kernels. A thread block processes a tile, which has 16 bytes per thread
// (coarse) or 4 bytes per thread (fine).
//
// The two null engines, `null` (nothing runs) and `copy` (transfers only), have no kernel, because the host launches
// nothing for them.
#include "coarse.cuh"
#include "fine.cuh"

#define PAPER_KERNEL(grain, place, pass, PASS, INVERSE, BITS)                       \
    KERNEL_BOUNDS(grain##_##place##_##pass##_##BITS, 512, 0, (Launch launch)) {     \
        DYNAMIC_SHARED(u32, shared);                                                \
        PAPER_RUN_##place(grain, PASS, INVERSE, BITS)                               \
    }
#define PAPER_RUN_shared(grain, PASS, INVERSE, BITS) \
    papers::grain<BITS, papers::Pass::PASS>(launch, papers::shared_tables<INVERSE>(shared), shared + 4 * 256);
#define PAPER_RUN_constant(grain, PASS, INVERSE, BITS) \
    papers::grain<BITS, papers::Pass::PASS>(launch, papers::constant_tables<INVERSE>(), shared);
#define PAPER_SIZES(grain, place, pass, PASS, INVERSE)        \
    PAPER_KERNEL(grain, place, pass, PASS, INVERSE, 128)      \
    PAPER_KERNEL(grain, place, pass, PASS, INVERSE, 192)      \
    PAPER_KERNEL(grain, place, pass, PASS, INVERSE, 256)
#define PAPER_FAMILY(grain, place)                            \
    PAPER_SIZES(grain, place, ecb_encrypt, ecb, false)        \
    PAPER_SIZES(grain, place, ecb_decrypt, ecb, true)         \
    PAPER_SIZES(grain, place, ctr, ctr, false)

PAPER_FAMILY(coarse, shared)
PAPER_FAMILY(coarse, constant)
PAPER_FAMILY(fine, shared)
PAPER_FAMILY(fine, constant)

EXPORT(coarse_thread_bytes, papers::COARSE_THREAD_BYTES);
EXPORT(fine_thread_bytes, papers::FINE_THREAD_BYTES);
EXPORT(coarse_state_bytes, 16);
EXPORT(fine_state_bytes, 8);
EXPORT(tbox_bytes, sizeof(papers::TBoxes));
