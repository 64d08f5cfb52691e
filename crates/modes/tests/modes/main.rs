//! The engine of the incremental modes, and the limits of the modes.

mod incremental;
mod limits;
