//! Tests of the simulated Cell: the shared suite, instruction set, assembler, scheduler, kernels, clocks and transfers.

mod assembler;
mod bad_input;
mod clocks;
mod device;
mod dma;
mod function;
mod instructions;
mod isa;
mod kernels;
mod schedule;
mod suite;
mod timing;
