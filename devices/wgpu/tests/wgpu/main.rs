//! The wgpu backend on a software device: the shared suite, shapes that it does not reach, and failures.

mod circuit;
mod failures;
mod fused;
mod memory;
mod ocb;
mod shapes;
mod software;
mod suite;
