//! The thesis on AES-128 on a GeForce 6800 GT and a GeForce 8800 GTS in an OpenSSL engine (2007): its figures, its files, and a
//! model of the 6800's texture cache, which explains why random bytes took 3.5 times as long as ordered ones.
//!
//! The model runs the lookups of the shader ([`trace`]) on real AES states through a cache ([`cache`], [`model`]). Its parameters are taken
//! from three times of the thesis ([`fit`]), and the model predicts the other times ([`predict`]). [`Sweep`] lists machines that the times
//! of the thesis do not distinguish.
//!
//! [`engine`] encrypts the files on devices of this machine, by the kernels of both cards. [`program`] runs the program `openssl`
//! on the files.

pub mod cache;
pub mod engine;
pub mod files;
pub mod fit;
pub mod model;
mod page;
pub mod paper;
pub mod predict;
pub mod program;
mod report;
pub mod sweep;
mod thesis;
pub mod trace;

pub use page::page;
pub use predict::Model;
pub use report::{json, text};
pub use sweep::Sweep;
