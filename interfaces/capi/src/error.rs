//! Error codes, their texts, and the message of the last error of each thread. Codes never change their meaning.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};

use lockstep::hazmat::Error as CoreError;

/// Success.
pub const LOCKSTEP_OK: c_int = 0;
/// The data are not authentic: the key, the nonce, the associated data or the tag is wrong, or the data were changed. No
/// plaintext is in the output.
pub const LOCKSTEP_ERROR_AUTHENTICATION: c_int = 1;
/// The message of the file format was encrypted with another key or another context.
pub const LOCKSTEP_ERROR_WRONG_KEY: c_int = 2;
/// The message of the file format was cut off.
pub const LOCKSTEP_ERROR_TRUNCATED: c_int = 3;
/// A pointer that must not be null is null.
pub const LOCKSTEP_ERROR_NULL: c_int = 4;
/// Memory that a call writes overlaps other memory of the call.
pub const LOCKSTEP_ERROR_OVERLAP: c_int = 5;
/// An argument or an option has a value that is not one of the defined values.
pub const LOCKSTEP_ERROR_ARGUMENT: c_int = 6;
/// The mode does not accept this key.
pub const LOCKSTEP_ERROR_KEY: c_int = 7;
/// The mode does not accept a nonce or an IV of this length.
pub const LOCKSTEP_ERROR_NONCE: c_int = 8;
/// The mode does not accept a tag of this length.
pub const LOCKSTEP_ERROR_TAG: c_int = 9;
/// The mode does not accept data of this length.
pub const LOCKSTEP_ERROR_LENGTH: c_int = 10;
/// More data than the mode or the format permits in one message.
pub const LOCKSTEP_ERROR_TOO_LONG: c_int = 11;
/// The output is too small.
pub const LOCKSTEP_ERROR_OUTPUT: c_int = 12;
/// The call is not permitted at this time or on this thread.
pub const LOCKSTEP_ERROR_ORDER: c_int = 13;
/// There is no device of this name.
pub const LOCKSTEP_ERROR_UNKNOWN_DEVICE: c_int = 14;
/// There is no kernel of this name, or the device cannot run it.
pub const LOCKSTEP_ERROR_UNKNOWN_KERNEL: c_int = 15;
/// The device or the kernel does not support the operation.
pub const LOCKSTEP_ERROR_UNSUPPORTED: c_int = 16;
/// The device cannot access the memory.
pub const LOCKSTEP_ERROR_OUT_OF_REACH: c_int = 17;
/// The device failed. All output of the call is invalid.
pub const LOCKSTEP_ERROR_DEVICE: c_int = 18;
/// The device returned a wrong result. All output of the call is invalid.
pub const LOCKSTEP_ERROR_WRONG_RESULT: c_int = 19;
/// A kernel failed its self-test and is not used.
pub const LOCKSTEP_ERROR_SELF_TEST: c_int = 20;
/// A device did not encrypt a message and reported no error. The output is invalid.
pub const LOCKSTEP_ERROR_NOT_SEALED: c_int = 21;
/// The input could not be read.
pub const LOCKSTEP_ERROR_READ: c_int = 22;
/// The output could not be written.
pub const LOCKSTEP_ERROR_WRITE: c_int = 23;
/// A file could not be opened or created.
pub const LOCKSTEP_ERROR_FILE: c_int = 24;
/// The output file exists, and overwriting was not requested.
pub const LOCKSTEP_ERROR_EXISTS: c_int = 25;
/// Input and output are the same file.
pub const LOCKSTEP_ERROR_SAME_FILE: c_int = 26;
/// The input file became longer or shorter during the call.
pub const LOCKSTEP_ERROR_INPUT_CHANGED: c_int = 27;
/// The progress callback cancelled the call.
pub const LOCKSTEP_ERROR_CANCELLED: c_int = 28;
/// The file is not a key file.
pub const LOCKSTEP_ERROR_KEY_FILE: c_int = 29;
/// The operating system returned no random bytes.
pub const LOCKSTEP_ERROR_RANDOM: c_int = 30;
/// The engine has opened devices in another process, before a fork.
pub const LOCKSTEP_ERROR_FORKED: c_int = 31;
/// A defect of this library.
pub const LOCKSTEP_ERROR_INTERNAL: c_int = 32;
/// An error that has no code of its own.
pub const LOCKSTEP_ERROR_OTHER: c_int = 33;
/// The file is not an intact Parquet file, or uses a feature that is not supported.
pub const LOCKSTEP_ERROR_PARQUET: c_int = 34;
/// The Parquet file is not protected as the call requires: the file or a column is plain, or is already encrypted.
pub const LOCKSTEP_ERROR_PROTECTION: c_int = 35;
/// There is no key for a part of the file, or the key callback failed.
pub const LOCKSTEP_ERROR_MISSING_KEY: c_int = 36;

/// The texts of the codes, in the order of their numbers: what happened, and what to do.
const TEXTS: [&CStr; 37] = [
    c"success",
    c"the data are not authentic: use the right key and nonce, or get intact data",
    c"wrong key or context: use the key and the context of the encryption",
    c"the encrypted data were cut off: get a complete copy",
    c"a pointer is null: pass memory or an object of this library",
    c"memory overlaps: pass separate memory, or the same pointer as input and output",
    c"an argument has no valid value: see the documentation of the function",
    c"the key is not valid: use a key of a length that the mode accepts",
    c"the nonce or IV has a wrong length: use a length that the mode accepts",
    c"the tag has a wrong length: use a length that the mode accepts",
    c"the data have a wrong length: use a length that the mode accepts",
    c"too much data for one message: split the data",
    c"the output is too small: pass more space",
    c"the call is not permitted now: see the documentation of the function",
    c"there is no such device: use a device of lockstep_engine_device_name",
    c"there is no such kernel: use a kernel of the device, or auto",
    c"the device does not support the operation: use another device or kernel",
    c"the device cannot access the memory: use memory of the device that does the work",
    c"the device failed: discard the output; use another device",
    c"the device returned a wrong result: do not use the device; check its hardware",
    c"a kernel failed its self-test: use another device, and report this",
    c"the device did not encrypt the data: discard the output; use another device",
    c"the input could not be read: check the source",
    c"the output could not be written: check the destination and its free space",
    c"a file could not be opened or created: check its path and permissions",
    c"the output file exists: use another name, or set the option `force`",
    c"input and output are the same file: use another output",
    c"the input changed while it was read: let nothing write to it, and try again",
    c"the progress callback cancelled the call: discard the output of a stream; an output file was not made",
    c"this is not a key file: use a file of lockstep_file_key_write, or of the command `lockstep keygen`",
    c"the operating system returned no random bytes: nothing was encrypted",
    c"the engine has opened devices before a fork: make an engine in this process",
    c"a defect of this library: discard the output, and report this",
    c"an error without a code: see lockstep_last_error_message",
    c"this is not an intact and supported Parquet file: get an intact file",
    c"the Parquet file is not encrypted as required: see lockstep_last_error_message",
    c"there is no key for a part of the file: give a key",
];

/// Codes for which the messages of the Rust library do not state what to do. To these messages, the text of the code in
/// [`TEXTS`] is added.
const WITHOUT_REMEDY: [c_int; 8] = [
    LOCKSTEP_ERROR_AUTHENTICATION,
    LOCKSTEP_ERROR_OUT_OF_REACH,
    LOCKSTEP_ERROR_DEVICE,
    LOCKSTEP_ERROR_OUTPUT,
    LOCKSTEP_ERROR_READ,
    LOCKSTEP_ERROR_WRITE,
    LOCKSTEP_ERROR_FILE,
    LOCKSTEP_ERROR_CANCELLED,
];

thread_local! {
    static LAST: RefCell<Option<CString>> = const { RefCell::new(None) };
}

/// Returns the text of an error code: what happened, and what to do. The text is constant. For any other number, the result
/// is "unknown error code".
#[unsafe(no_mangle)]
pub extern "C" fn lockstep_strerror(code: c_int) -> *const c_char {
    text(code).unwrap_or(c"unknown error code").as_ptr()
}

/// Returns the message of the last call that failed on this thread, in English and UTF-8: what happened, and what to do. The
/// message is empty if no call has failed. It contains no secrets. The pointer is valid until the next call that fails on
/// this thread, or the end of the thread.
#[unsafe(no_mangle)]
pub extern "C" fn lockstep_last_error_message() -> *const c_char {
    let message = LAST.try_with(|last| last.try_borrow().ok()?.as_ref().map(|message| message.as_ptr()));
    // An error of `try_with` means that the thread is ending and its message has been freed.
    message.ok().flatten().unwrap_or(c"".as_ptr())
}

fn text(code: c_int) -> Option<&'static CStr> {
    TEXTS.get(usize::try_from(code).ok()?).copied()
}

/// The failure of a call.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: c_int,
    message: String,
}

/// The result of a call before it is converted to a code.
pub(crate) type Outcome<T> = Result<T, Failure>;

impl Failure {
    /// A failure with a message that states what to do.
    pub(crate) fn new(code: c_int, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into() }
    }

    /// The failure for an argument with an undefined value.
    pub(crate) fn argument(message: impl Into<String>) -> Failure {
        Failure::new(LOCKSTEP_ERROR_ARGUMENT, message)
    }

    /// Stores the message for the thread, and returns the code.
    pub(crate) fn report(self) -> c_int {
        let Failure { code, mut message } = self;
        // A path or a name cannot contain a null byte. In C such a byte would end the message.
        message.retain(|c| c != '\0');
        // If the thread is ending, the message is dropped, because the variable of the thread no longer exists.
        let _ =
            LAST.try_with(|last| last.try_borrow_mut().map(|mut last| *last = CString::new(message).ok()));
        code
    }

    fn described(code: c_int, message: String) -> Failure {
        let remedy =
            text(code).filter(|_| WITHOUT_REMEDY.contains(&code)).and_then(|text| text.to_str().ok());
        match remedy {
            Some(text) => Failure { code, message: format!("{message} ({text})") },
            None => Failure { code, message },
        }
    }
}

/// Fails unless the condition holds.
pub(crate) fn ensure(holds: bool, failure: impl FnOnce() -> Failure) -> Outcome<()> {
    if holds { Ok(()) } else { Err(failure()) }
}

impl From<CoreError> for Failure {
    fn from(error: CoreError) -> Failure {
        Failure::described(core_code(&error), error.to_string())
    }
}

impl From<lockstep::Error> for Failure {
    fn from(error: lockstep::Error) -> Failure {
        use lockstep::Error;
        let cause = match &error {
            Error::Partial { source, .. } => source,
            other => other,
        };
        let code = match cause {
            Error::WrongKeyOrContext | Error::OtherFormat(_) => LOCKSTEP_ERROR_WRONG_KEY,
            Error::Damaged { .. } => LOCKSTEP_ERROR_AUTHENTICATION,
            Error::Truncated { .. } => LOCKSTEP_ERROR_TRUNCATED,
            Error::TooLong => LOCKSTEP_ERROR_TOO_LONG,
            Error::KeyLength { .. } => LOCKSTEP_ERROR_KEY,
            Error::Random { .. } => LOCKSTEP_ERROR_RANDOM,
            Error::Read(_) => LOCKSTEP_ERROR_READ,
            Error::Write(_) => LOCKSTEP_ERROR_WRITE,
            Error::InputChanged { .. } => LOCKSTEP_ERROR_INPUT_CHANGED,
            Error::File { .. } => LOCKSTEP_ERROR_FILE,
            Error::Exists { .. } => LOCKSTEP_ERROR_EXISTS,
            Error::SameFile { .. } => LOCKSTEP_ERROR_SAME_FILE,
            Error::Interrupted => LOCKSTEP_ERROR_CANCELLED,
            Error::FailedBefore { .. } => LOCKSTEP_ERROR_ORDER,
            Error::KeyFile { .. } => LOCKSTEP_ERROR_KEY_FILE,
            Error::Setting { .. } => LOCKSTEP_ERROR_ARGUMENT,
            Error::Core(error) => core_code(error),
            _ => LOCKSTEP_ERROR_OTHER,
        };
        Failure::described(code, error.to_string())
    }
}

impl From<lockstep_parquet::Error> for Failure {
    fn from(error: lockstep_parquet::Error) -> Failure {
        use lockstep_parquet::Error;
        let code = match error {
            Error::Library(error) => return error.into(),
            Error::NotAuthentic(_) => LOCKSTEP_ERROR_AUTHENTICATION,
            Error::Malformed(_) | Error::Unsupported(_) => LOCKSTEP_ERROR_PARQUET,
            Error::NotEncrypted
            | Error::PlainColumn(_)
            | Error::MissingAad
            | Error::UnauthenticatedPages
            | Error::UnauthenticatedFooter
            | Error::AlreadyEncrypted => LOCKSTEP_ERROR_PROTECTION,
            Error::MissingKey(_) | Error::KeySource(_) => LOCKSTEP_ERROR_MISSING_KEY,
            Error::KeyLength { .. } => LOCKSTEP_ERROR_KEY,
            Error::UnknownColumn { .. } | Error::Contradiction { .. } | Error::Argument(_) => {
                LOCKSTEP_ERROR_ARGUMENT
            }
            _ => LOCKSTEP_ERROR_OTHER,
        };
        Failure::new(code, error.to_string())
    }
}

fn core_code(error: &CoreError) -> c_int {
    match error {
        CoreError::KeyLength { .. } | CoreError::ModeKey { .. } | CoreError::XtsHalvesEqual => {
            LOCKSTEP_ERROR_KEY
        }
        CoreError::IvLength { .. } => LOCKSTEP_ERROR_NONCE,
        CoreError::TagLength { .. } => LOCKSTEP_ERROR_TAG,
        CoreError::NotWholeBlocks { .. } | CoreError::DataLength { .. } => LOCKSTEP_ERROR_LENGTH,
        CoreError::TooLong { .. } => LOCKSTEP_ERROR_TOO_LONG,
        CoreError::OutputLength { .. } => LOCKSTEP_ERROR_OUTPUT,
        CoreError::Order { .. } => LOCKSTEP_ERROR_ORDER,
        CoreError::AuthenticationFailed => LOCKSTEP_ERROR_AUTHENTICATION,
        CoreError::Unsupported { .. } => LOCKSTEP_ERROR_UNSUPPORTED,
        CoreError::UnknownDevice { .. } => LOCKSTEP_ERROR_UNKNOWN_DEVICE,
        CoreError::UnknownKernel { .. } | CoreError::KernelElsewhere { .. } => LOCKSTEP_ERROR_UNKNOWN_KERNEL,
        CoreError::OutOfReach { .. } => LOCKSTEP_ERROR_OUT_OF_REACH,
        CoreError::NotSealed => LOCKSTEP_ERROR_NOT_SEALED,
        CoreError::DeviceFailed { .. } => LOCKSTEP_ERROR_DEVICE,
        CoreError::WrongResult { .. } => LOCKSTEP_ERROR_WRONG_RESULT,
        CoreError::SelfTest { .. } => LOCKSTEP_ERROR_SELF_TEST,
        _ => LOCKSTEP_ERROR_OTHER,
    }
}

#[cfg(test)]
mod tests;
