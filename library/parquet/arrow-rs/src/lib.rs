//! Tests of `lockstep-parquet` with arrow-rs are in `tests`.
