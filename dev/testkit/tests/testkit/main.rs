//! The mock devices, tested by the shared suite and the stream properties.

mod mock_device;
mod streams;
