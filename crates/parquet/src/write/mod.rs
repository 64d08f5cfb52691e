//! Encryption of a plain file.
