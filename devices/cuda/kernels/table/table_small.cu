// `cuda/table` with one T-box (32 KiB), for devices with less shared memory.
#include "passes.cuh"

TABLE_FAMILY(table_small, 1);
