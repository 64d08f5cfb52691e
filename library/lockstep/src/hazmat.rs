//! **Hazardous material**: raw AES modes.
//!
//! Outside of this module and of [`crate::aead`] Lockstep generates its own salts, never reuses a nonce, releases no plaintext
//! before it is verified, and detects changed files. In this module **the caller is responsible for all of that**. In `aead` the
//! caller is responsible for nonces.
//!
//! - **A nonce that is used twice** under one key reveals the XOR of two messages in CTR, OFB, GCM, OCB, CCM and EAX; in GCM it
//!   also reveals the authentication key, so that anyone can forge messages. The caller must generate unique nonces.
//! - **ECB, CBC, CFB, OFB, CTR, XTS, HCTR2 and PCBC do not authenticate.** An attacker who changes the ciphertext changes the
//!   plaintext unnoticed, and a program that reveals whether CBC padding is valid is a decryption oracle. Add a MAC over
//!   the ciphertext.
//! - **Incremental decryption of GCM and CCM** ([`Opener`], [`stream`]) returns plaintext before the tag is checked. Do not use the
//!   plaintext until `finish` has succeeded.
//! - **ECB reveals equal blocks.** XTS is for disk sectors.
//! - **Some kernels leak keys by timing.** These kernels are used only if they are selected by name. Their
//!   [`constant_time`](backend::KernelInfo::constant_time) is false.
//!
//! The module exists for interoperability, for protocols with their own nonces, and for study. For files and messages
//! use [`crate::encrypt`], [`crate::seal`] and related functions; [`crate::aead`] has the authenticated modes. The functions in
//! this module take the planner of [`crate::Engine::planner`]. The streams of [`stream`] take a reference to the [`crate::Engine`].

pub use lockstep_cache::Cache;
pub use lockstep_core::{Block, Error, Key, KeySize, Result};
pub use lockstep_core::{backend, chaining, data, key, names, share, work};
#[doc(hidden)]
pub use lockstep_core::{shown, stack, wiping};
/// AES on the calling thread, for single calls: without planner, other threads or allocation.
pub use lockstep_cpu::inline;
pub use lockstep_modes as mode;
pub use lockstep_modes::stream::{self, Opener, Pieces};
pub use lockstep_planner::{self as planner, calibrate, group, selftest, timing, verify};
