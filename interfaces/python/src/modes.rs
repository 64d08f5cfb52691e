//! The authenticated modes by the names of their classes in Python.

use lockstep::hazmat::mode::Aead;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// The length of full tags in bytes.
pub(crate) const TAG: usize = 16;

/// The mode of a class.
///
/// # Errors
/// `TypeError` if no class has this name.
pub(crate) fn mode_of_class(class: &str) -> PyResult<Aead> {
    let mode = Aead::ALL.into_iter().find(|mode| class_name(*mode) == class);
    mode.ok_or_else(|| PyTypeError::new_err("the mode must be a class of lockstep.aead"))
}

/// The name of a mode's class.
pub(crate) fn class_name(mode: Aead) -> &'static str {
    match mode {
        Aead::Gcm => "AESGCM",
        Aead::GcmSiv => "AESGCMSIV",
        Aead::Ocb => "AESOCB3",
        Aead::Siv => "AESSIV",
        Aead::Ccm => "AESCCM",
        Aead::Xaes => "XAES256GCM",
    }
}
