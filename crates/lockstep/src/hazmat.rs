//! **Hazardous material**: AES modes in the raw.
//!
//! Outside of this module Lockstep draws its own salts, never reuses a nonce, releases no plaintext before it is
//! verified, and tells a changed file from an intact one. In here **all of that is in your hands**:
//!
//! - **A nonce used twice** under one key reveals the XOR of two messages in CTR, OFB, GCM and CCM; in GCM it also gives
//!   away the authentication key, so that anyone can forge. You make the nonces, and you make them unique.
//! - **ECB, CBC, CFB, OFB, CTR, XTS and PCBC do not authenticate.** An attacker can change plaintexts through them,
//!   and a program that tells right from wrong CBC padding decrypts for whoever asks. Add a MAC over the ciphertext.
//! - **Incremental decryption of GCM and CCM** hands out plaintext before the tag is checked: use none of it until
//!   `finish` has said yes.
//! - **ECB shows equal blocks.** XTS is for disk sectors.
//! - Kernels whose names say so leak keys by timing; none of them is taken unless asked for by name.
//!
//! It is here for interoperability, for protocols that bring their own nonces, and for study. For files and messages
//! use [`crate::encrypt`], [`crate::seal`] and their like. [`crate::Engine::planner`] is what the functions in here ask for.

pub use lockstep_cache::Cache;
pub use lockstep_core::{Block, Error, Key, KeySize, Result};
pub use lockstep_core::{backend, chaining, data, key, names, share, work};
/// AES of one piece of one message at once, on the calling thread: without planner, threads or allocation.
pub use lockstep_cpu::inline;
pub use lockstep_modes as mode;
pub use lockstep_modes::stream;
pub use lockstep_planner::{self as planner, calibrate, group, selftest, timing, verify};
