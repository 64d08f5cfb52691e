//! Tests of the mock devices by the shared suite and by the stream properties.

mod mock_device;
mod streams;
