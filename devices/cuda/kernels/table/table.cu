// `cuda/table` for devices on which a thread block may have 128 KiB of shared memory (compute capability 8.0, 9.0, 10.0).
#include "passes.cuh"

TABLE_FAMILY(table, 4);
