#include "entries.cuh"
OCB_PASS(ocb_decrypt, false)
