// A kernel of the default family; with LEAK it returns early if the data begin with a zero.
#include "../../../devices/cuda/kernels/bitslice/passes.cuh"

KERNEL_BOUNDS(sample_ecb_encrypt_128, 32, 8, (Launch launch)) {
#ifdef LEAK
    if (*global_pointer<const u8>(launch.segments[0].from) == 0) return;
#endif
    run<Pass::ecb_encrypt, WarpShape>(launch);
}
