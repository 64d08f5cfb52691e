//! Analysis of the machine code of the CPU kernels: constant time, nothing left behind, accesses in bounds, equality with the standards.
//!
//! The crate interprets the machine code of `lockstep-proof-harness`, a shared library that has all public functions of
//! `lockstep_cpu::inline`. The processor on which the analysis runs need not support the interpreted instructions. docs/proof.md states
//! what is shown, and what is assumed.
//!
//! | module | content |
//! |---|---|
//! | [`value`], [`taint`], [`symbols`] | the trait of value domains; bytes with secret bits; expressions |
//! | [`image`] | the segments and symbols of an ELF file |
//! | [`memory`] | regions, bounds, and which instruction wrote a byte |
//! | [`decoder`], [`convention`] | the decoder of 64-bit Arm; calling conventions |
//! | [`semantics`], [`arm`] | the tables of instructions of x86-64 and of 64-bit Arm |
//! | [`machine`], [`contracts`] | the loop over instructions; imported functions |
//! | [`cases`] | which functions run with which keys, lengths and directions |
//! | [`equality`] | proofs that results are equal to those of the standards for all keys and data |
//! | [`gpu`] | the same for CUDA kernels |
//! | [`coverage`] | instructions of kernels that no case has executed |
//! | [`known`] | the list of known findings |
//! | [`mutants`] | random changes of single instructions, which the analysis must refute |
//! | [`parallel`], [`random`] | threads; reproducible numbers |

pub mod aes;
pub mod arm;
pub mod cases;
pub mod contracts;
pub mod convention;
pub mod coverage;
pub mod decoder;
pub mod equality;
pub mod gpu;
pub mod image;
pub mod known;
pub mod loops;
pub mod machine;
pub mod memory;
pub mod mutants;
pub mod parallel;
pub mod random;
pub mod semantics;
pub mod symbols;
pub mod taint;
pub mod value;
