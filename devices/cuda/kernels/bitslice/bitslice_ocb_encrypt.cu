#include "entries.cuh"
OCB_PASS(ocb_encrypt, true)
