//! The QPUs of VideoCore IV, the GPU of the Raspberry Pi 1 to 3: their instruction set, a simulator, a language for programs, and
//! its compiler.
//!
//! Sources: Broadcom, VideoCore IV 3D Architecture Reference Guide (2013), section 3, called "the guide"; and the addendum of
//! the assembler vc4asm, which corrects the guide by experiments on hardware, called "the addendum".
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
