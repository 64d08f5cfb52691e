// Entry points of a pass, for both shapes. Each pass is a module of its own, which a program loads only if it uses the pass.
#pragma once
#include "ocb.cuh"
#include "passes.cuh"

// A thread block has 32 threads. With 8 thread blocks on a multiprocessor, each thread can have 255 registers.
#define PASS(pass)                                                                                            \
    KERNEL_BOUNDS(bitslice_##pass, 32, 8, (Launch launch)) { run<Pass::pass, WarpShape>(launch); }            \
    KERNEL_BOUNDS(bitslice_lane_##pass, 32, 8, (Launch launch)) { run<Pass::pass, LaneShape>(launch); }
#define OCB_PASS(pass, encrypts)                                                                              \
    KERNEL_BOUNDS(bitslice_##pass, 32, 8, (Launch launch, const OcbMasks *masks)) { run_ocb<encrypts, WarpShape>(launch, masks); } \
    KERNEL_BOUNDS(bitslice_lane_##pass, 32, 8, (Launch launch, const OcbMasks *masks)) { run_ocb<encrypts, LaneShape>(launch, masks); }
