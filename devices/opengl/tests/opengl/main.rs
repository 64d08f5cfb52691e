//! Tests of the OpenGL backend on a software device: the shared suite and failures.

mod circuit;
mod failures;
mod software;
mod suite;
