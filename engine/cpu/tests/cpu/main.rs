//! The CPU backend: the shared suite, each kernel alone, threads, published vectors and secret-independent timing.

mod armv8_kernel;
mod fused;
mod inline;
mod kernel_checks;
mod leak;
mod nist;
mod soft_kernel;
mod streams;
mod suite;
mod threads;
mod wycheproof;
mod x86_kernels;
