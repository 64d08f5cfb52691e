//! The QPUs of VideoCore IV, the GPU of the Raspberry Pi 1 to 3: their instruction set, a simulator, a language for
//! programs, and its compiler.
//!
//! The comments of this crate name these sources:
//!
//! - *Broadcom's guide*: Broadcom, VideoCore IV 3D Architecture Reference Guide (2013).
//! - *vc4asm's addendum*: the addendum to this guide by the assembler vc4asm. It corrects the guide with results of experiments
//!   on hardware.
//! - *the thesis*: a thesis on AES on the GPU of the Raspberry Pi. The page docs/papers/videocore.md reproduces its
//!   measurements.
#![deny(unsafe_code)]

pub mod asm;
pub mod board;
pub mod chip;
pub mod compiler;
pub mod device;
pub mod isa;
pub mod kernels;
pub mod lang;
pub mod launch;
pub mod sim;
