//! The extension `lockstep._native` of the Python package `lockstep-aes`.
//!
//! | module | content |
//! |---|---|
//! | `aead` | the classes of `lockstep.aead`, batches, and `lockstep.tensor.seal` and `open` |
//! | `buffer` | Python's buffers as slices, and `bytes` that are written in place |
//! | `command` | the command, for `python -m lockstep` |
//! | `engine` | the engine of the process: selection of devices, forks |
//! | `file`, `keys`, `source`, `task` | encrypted files; their keys; files and file objects; long work with signals and progress |
//! | `turn` | a lock for work that calls Python |
//! | `forks` | detects objects that a child process must not use |
//! | `groups` | many files, on several machines |
//! | `hazmat` | the raw modes |
//! | `parquet`, `parquet_modules` | encrypted Parquet files; modules of such files in arrays |
//! | `random` | AES-256-CTR as a source of random numbers |
//! | `tensor` | arrays of other libraries, on the host or on a device |
//! | `text` | texts that can be secrets |
//! | `error` | `InvalidTag`, and the exception for each error |
//!
//! Python's part of the package is in `python/lockstep`. Rules for this crate:
//!
//! - The locks of this crate are taken while the thread is attached to the interpreter and released before it detaches, or taken
//!   and released while it is detached. A thread never waits for a lock whose owner waits for the interpreter.
//! - Data of a call that detaches are exported buffers or `bytes`, so they can neither move nor be freed during the call. `buffer`
//!   states what holds for bytes that other threads can change.
//! - A call that detaches is counted (`forks::detached`), so that the child of a fork can detect whether locks of its parent may be
//!   held.
//! - Methods of file objects of the program are called by the thread that has made the call.

mod aead;
mod buffer;
mod command;
mod engine;
mod error;
mod file;
mod forks;
mod groups;
mod hazmat;
mod keys;
mod parquet;
mod parquet_modules;
mod random;
mod source;
mod task;
mod tensor;
mod text;
mod turn;

use pyo3::prelude::*;

/// AES on parallel hardware: the native part of the package `lockstep`.
#[pymodule(name = "_native")]
mod native {
    use super::*;

    #[pymodule_export]
    use {
        aead::{many_in_buffer, many_in_list, tensor_batch},
        command::run_command,
        engine::{EarlierSelection, devices, missing_devices, select, selftest},
        error::shown_name,
        file::{NativeReader, NativeWriter, decrypt_file, encrypt_buffers, encrypt_file},
        file::{generate_key, plaintext_len},
        groups::{NativeGroups, NativePlan},
        hazmat::{cmac, gmac, hctr2, raw, raw_into, wrap},
        parquet::{NativeParquet, parquet_encrypt},
        parquet_modules::parquet_modules,
        random::{Keystream, NumpyBits, normal_table},
        tensor::{DeviceArray, array_size, synchronize},
    };

    /// Runs in the child of a fork.
    #[pyfunction]
    fn after_fork_in_child() {
        forks::after_fork_in_child();
        tensor::after_fork_in_child();
        engine::after_fork_in_child();
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        aead::add(module)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        let invalid_tag = module.py().get_type::<error::InvalidTag>();
        invalid_tag.setattr("verified", module.py().None())?;
        module.add("InvalidTag", invalid_tag)
    }
}
