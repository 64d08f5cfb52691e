//! The table of instructions: each entry compared with the processor, and with itself on other secrets.

mod assemble;
#[cfg(target_arch = "x86_64")]
mod native;
mod state;

#[cfg(target_arch = "x86_64")]
mod processor;
mod secrets;
mod wide;
