//! Implements the devices of `lockstep-gpu-host` by an open device of OpenGL: the thread of its context, and the staging buffers of a
//! family of kernels.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lockstep_core::backend::DeviceId;
use lockstep_core::{Error, Result};
use lockstep_gpu_host::{ContextThread, HostDevice, Promise};

use zeroize::Zeroizing;

use crate::gl::Gl;

/// An open device. `C` is the type in which a family of kernels stores a chunk.
pub(crate) struct Driver<C> {
    pub(crate) id: DeviceId,
    pub(crate) thread: Arc<ContextThread<Gl>>,
    chunk: std::marker::PhantomData<fn() -> C>,
}

/// The draws of a chunk. The host fills in the input, and the thread of the context replaces it by the results.
pub(crate) type Staging<C> = Arc<Mutex<C>>;

/// The report of the context's thread about a chunk: nothing, or the reason of a failure.
pub(crate) type Drawn = Promise<std::result::Result<(), String>>;

impl<C> Driver<C> {
    pub(crate) fn new(id: DeviceId, thread: Arc<ContextThread<Gl>>) -> Driver<C> {
        Driver { id, thread, chunk: std::marker::PhantomData }
    }
}

/// Makes room for a number of bytes in `memory`. If new memory must be allocated, the content is lost, and the old memory
/// is wiped.
pub(crate) fn reserve(memory: &mut Zeroizing<Vec<u8>>, bytes: usize) {
    if memory.capacity() < bytes {
        *memory = Zeroizing::new(Vec::with_capacity(bytes));
    }
}

/// Runs work that may fail. If the work fails, the context is wiped at once; otherwise the context is wiped at the end of the call.
pub(crate) fn or_wipe(
    mut work: impl FnMut(&mut Gl) -> std::result::Result<(), String>,
) -> impl FnMut(&mut Gl) -> std::result::Result<(), String> {
    move |gl| {
        work(gl).inspect_err(|_| {
            // The first error is reported. If the context cannot be wiped, its next use returns an error.
            let _ = gl.wipe();
        })
    }
}

pub(crate) fn lock<C>(chunk: &Staging<C>) -> MutexGuard<'_, C> {
    chunk.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<C: Default + Send + 'static> HostDevice for Driver<C> {
    type Staging = Staging<C>;
    type Event = Drawn;
    const MOST_IDLE: usize = 4;
    const WIPES_EACH_CHUNK: bool = false;

    fn id(&self) -> DeviceId {
        self.id
    }

    fn allocate_staging(self: &Arc<Self>) -> Result<Staging<C>> {
        Ok(Staging::default())
    }

    fn wipe(&self, staging: &mut Staging<C>) -> bool {
        *lock(staging) = C::default();
        // The thread wipes the context before it does any later work. An error is ignored here, because the context then
        // refuses later work.
        drop(self.thread.send(Gl::wipe));
        true
    }

    fn is_past(&self, _: &Staging<C>, event: &Self::Event) -> bool {
        event.is_ready()
    }

    fn wait(&self, event: &Self::Event) -> Result<()> {
        event.result()?.map_err(|reason| Error::DeviceFailed { device: self.id, reason })
    }
}
