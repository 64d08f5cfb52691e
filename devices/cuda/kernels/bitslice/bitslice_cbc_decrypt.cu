#include "entries.cuh"
PASS(cbc_decrypt)
