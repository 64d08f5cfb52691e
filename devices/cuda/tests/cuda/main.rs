//! Tests of the CUDA backend on the emulator: the shared suite, each kernel alone, large work, data races and the emulator itself.

mod circuit;
mod emulation;
mod emulator;
mod large;
mod ocb;
mod products;
mod races;
mod serial_kernels;
mod suite;
mod table_kernels;
