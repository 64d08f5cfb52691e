//! The modes of operation, each a recipe of passes.
//!
//! [`Cipher`] has the modes without authentication, for one message or a batch; [`gcm`] and [`ccm`] the
//! authenticated ones; [`cmac`] and [`gcm::gmac`] the MACs. Everything here is one-shot and waits; the incremental
//! forms are in [`crate::stream`].

pub mod ccm;
pub mod cipher;
pub mod cmac;
pub mod gcm;
pub mod padding;
pub mod xts;

pub use cipher::{Cipher, CipherKey, Direction, Message};
