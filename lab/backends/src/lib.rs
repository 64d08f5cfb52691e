//! The backends of the laboratory, for tests and study: the simulated Cell (`spu`) and VideoCore (`qpu`), and the emulator of
//! CUDA (`cuda:emu`). Their devices are used only if they are named.
#![forbid(unsafe_code)]

use lockstep::engine::BackendOptions;
use lockstep::hazmat::backend::Backend;
use lockstep_cuda::CudaBackend;
use lockstep_qpu::device::{Qpu, QpuBackend};
use lockstep_spu::device::SpuBackend;

/// The backends of the laboratory. The backends of CUDA and of the QPUs also find real devices.
pub fn backends(_: &BackendOptions) -> Vec<Box<dyn Backend>> {
    vec![
        Box::new(CudaBackend { has_emulator: true }),
        Box::new(SpuBackend),
        Box::new(QpuBackend { simulator: Some(Qpu::default) }),
    ]
}

/// Registers these backends for all engines of the process. Further calls have no effect.
pub fn register() {
    // The result is false if the backends are registered already.
    lockstep::engine::register(backends);
}

#[cfg(test)]
mod tests;

/// Compiles and runs the code of docs/library.md. The library cannot do this itself, because its package does not
/// contain the page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
pub struct Library;

/// Compiles and runs the code of docs/rustls.md.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rustls.md")]
pub struct Rustls;
