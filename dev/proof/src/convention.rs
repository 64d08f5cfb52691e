//! The calling conventions: the purposes of registers, by their numbers.

use iced_x86::Register;

/// A calling convention.
#[derive(Debug)]
pub struct Convention {
    /// The general registers that have the first arguments.
    pub arguments: &'static [usize],
    /// The stack pointer.
    pub stack: usize,
    /// The general register that has the address to return to. `None` if this address is on the stack.
    pub link: Option<usize>,
    /// The general registers that a function preserves.
    pub preserved: &'static [usize],
    /// The vector registers whose lowest eight bytes a function preserves.
    pub preserved_vectors: std::ops::Range<usize>,
    /// The general registers that a function of the C library may change.
    pub scratch: &'static [usize],
    /// The name of a general register.
    pub name: fn(usize) -> String,
    /// The prefix of the names of vector registers.
    pub vector: &'static str,
    /// True if kernels clear registers and the stack before they return, so that secrets there are findings.
    pub clears: bool,
}

/// System V ABI for x86-64, section 3.2. A general register has the number of its encoding. The result is in register 0.
pub static X86_64: Convention = Convention {
    arguments: &[7, 6, 2, 1, 8, 9],
    stack: 4,
    link: None,
    preserved: &[3, 5, 12, 13, 14, 15, 4],
    preserved_vectors: 0..0,
    scratch: &[8, 9, 10, 11, 0, 1, 2, 6, 7],
    name: |number| format!("{:?}", Register::RAX + number as u32),
    vector: "zmm",
    clears: true,
};

/// Procedure Call Standard for the Arm 64-bit Architecture (AAPCS64), sections 6.1.1 and 6.1.2. The stack pointer has the number 31. The
/// result is in register 0.
pub static ARM_64: Convention = Convention {
    arguments: &[0, 1, 2, 3, 4, 5],
    stack: 31,
    link: Some(30),
    preserved: &[19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 31],
    preserved_vectors: 8..16,
    scratch: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18],
    name: |number| if number == 31 { "SP".into() } else { format!("X{number}") },
    vector: "V",
    clears: false,
};
