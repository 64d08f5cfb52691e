//! Texts from Python that are secrets, or can be secrets that were given in a wrong place.

use std::ops::Deref;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use zeroize::Zeroizing;

/// A text that is wiped on drop. Errors of the conversion from a `str` do not contain the text.
pub(crate) struct Text(Zeroizing<String>);

impl<'a, 'py> FromPyObject<'a, 'py> for Text {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Text> {
        let text = object.cast::<PyString>()?;
        Ok(Text(Zeroizing::new(utf8(&text)?.to_owned())))
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// Returns the characters of a `str`. For surrogates, this function raises an exception of its own, because the exception of Python
/// would contain the text.
pub(crate) fn utf8<'a>(text: &'a Bound<'_, PyString>) -> PyResult<&'a str> {
    text.to_str().map_err(|_| {
        PyValueError::new_err("a text has surrogates, which are not characters: give valid Unicode")
    })
}
