//! Tensors: arrays of other libraries on the host or on a device, by DLPack, by `__cuda_array_interface__` or by the buffer protocol.
//!
//! | module | content |
//! |---|---|
//! | `import` | the memory of an array, and the stream of the caller |
//! | `memory` | `lockstep.tensor.DeviceArray`: memory of a device |
//! | `background` | work that goes on after the call has returned |
//! | `transform` | calls whose data and output are buffers or arrays |
//!
//! `crate::aead` has the authenticated modes of arrays.
//!
//! Work on device memory runs on the caller's stream. The references to the arrays are held until the work has ended.

mod background;
mod import;
mod memory;
mod transform;

pub(crate) use background::{after_fork_in_child, start as start_in_background, synchronize};
pub(crate) use import::{Imported, Keep, Place, array_size, empty_like, is_tensor, result_like};
pub(crate) use memory::{Allocation, DeviceArray};
pub(crate) use transform::Transform;
