//! Tests of the wgpu backend on a software device: the shared suite, lengths that the suite does not reach, and failures.

mod circuit;
mod failures;
mod fused;
mod memory;
mod ocb;
mod shapes;
mod software;
mod suite;
