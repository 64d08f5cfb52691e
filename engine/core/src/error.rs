//! Errors: what went wrong, and what to do about it.

use crate::names::DeviceId;

/// The result of fallible functions of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error. Failures of authentication intentionally have no details.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A key whose length is not one of the three AES key lengths.
    #[error("a key of {got} bytes: AES keys have 16, 24 or 32 bytes")]
    KeyLength {
        /// Bytes given.
        got: usize,
    },
    /// A key of a length that the mode does not accept.
    #[error("{mode} takes {expected}, not a key of {got} bytes")]
    ModeKey {
        /// The mode's name.
        mode: &'static str,
        /// The accepted keys, in words.
        expected: &'static str,
        /// Bytes given.
        got: usize,
    },
    /// The two halves of an XTS key are equal, which IEEE 1619 and FIPS 140 forbid.
    #[error("the two halves of the XTS key are equal: use two independent keys")]
    XtsHalvesEqual,
    /// An IV or nonce of the wrong length.
    #[error("{mode} takes an IV of {expected} bytes, not of {got}")]
    IvLength {
        /// The mode's name.
        mode: &'static str,
        /// The accepted lengths, in words.
        expected: &'static str,
        /// Bytes given.
        got: usize,
    },
    /// A tag length that the mode does not allow.
    #[error("{mode} has tags of {expected} bytes, not of {got}")]
    TagLength {
        /// The mode's name.
        mode: &'static str,
        /// The allowed lengths, in words.
        expected: &'static str,
        /// Bytes asked for.
        got: usize,
    },
    /// Data that must be whole blocks but are not.
    #[error("{mode} without padding takes a multiple of 16 bytes; {extra} are left over")]
    NotWholeBlocks {
        /// The mode's name.
        mode: &'static str,
        /// Bytes beyond the last whole block.
        extra: usize,
    },
    /// Data of a length that the mode does not accept.
    #[error("{mode} takes {expected}, not {got} bytes")]
    DataLength {
        /// The mode's name.
        mode: &'static str,
        /// The accepted lengths, in words.
        expected: &'static str,
        /// Bytes given.
        got: usize,
    },
    /// More data than the mode may take under one key and IV.
    #[error("{mode} takes at most {limit} bytes of {what} in one message")]
    TooLong {
        /// The mode's name.
        mode: &'static str,
        /// What is too long.
        what: &'static str,
        /// The limit in bytes.
        limit: u64,
    },
    /// An output buffer of the wrong size.
    #[error("the output has {got} bytes where {needed} are needed")]
    OutputLength {
        /// Bytes needed.
        needed: usize,
        /// Bytes given.
        got: usize,
    },
    /// Calls in a wrong order, such as data after the end.
    #[error("{what}")]
    Order {
        /// The call, in words.
        what: &'static str,
    },
    /// Wrong key, nonce, associated data or tag, or changed ciphertext. No plaintext was released.
    #[error("authentication failed: wrong key, or the data were changed")]
    AuthenticationFailed,
    /// No valid PKCS#7 padding. An attacker who may choose ciphertexts must not be able to distinguish this error from
    /// others.
    #[error("the padding is wrong: wrong key or IV, damaged data, or data encrypted without padding")]
    Padding,
    /// An operation that the device or kernel does not support.
    #[error("{kernel} cannot do {operation}: choose another device or kernel, or leave the choice to `auto`")]
    Unsupported {
        /// The requested kernel; if no kernel was named, the backend of the requested devices.
        kernel: &'static str,
        /// The operation that is not supported.
        operation: String,
    },
    /// There is no device of this name.
    #[error("no device `{name}`: {known}")]
    UnknownDevice {
        /// The requested name.
        name: String,
        /// The existing devices, in words.
        known: String,
    },
    /// The device has no kernel of this name, or cannot run it.
    #[error("no kernel `{name}` on {device}: {known}")]
    UnknownKernel {
        /// The requested name.
        name: String,
        /// The device on which the kernel was requested.
        device: DeviceId,
        /// The existing kernels, in words.
        known: String,
    },
    /// The named kernel does not run on the named device.
    #[error(
        "the kernel `{kernel}` does not run on the device `{device}`: {kernel} runs on {others}; {device} has {known}"
    )]
    KernelElsewhere {
        /// The kernel asked for.
        kernel: String,
        /// The device asked for.
        device: String,
        /// The devices that have this kernel, in words.
        others: String,
        /// The kernels that this device has, in words.
        known: String,
    },
    /// A launch option that the kernel does not have, or a number that it does not allow.
    #[error("launch option `{option}`: {expected}")]
    LaunchOption {
        /// The option as it was given.
        option: String,
        /// What is allowed, in words.
        expected: String,
    },
    /// The data are in memory that the device cannot access.
    #[error("{device} cannot reach {what}")]
    OutOfReach {
        /// The device of the call.
        device: DeviceId,
        /// The memory that the device cannot access.
        what: String,
    },
    /// A device did not encrypt a message and reported no error. The output must be discarded.
    #[error(
        "a device did not encrypt a message, and reported no error: discard the output, use another device and report this"
    )]
    NotSealed,
    /// The device failed during work. All output is invalid, including in-place data.
    #[error("{device} failed: {reason}")]
    DeviceFailed {
        /// The device.
        device: DeviceId,
        /// The reason for the failure.
        reason: String,
    },
    /// The result of a device differs from that of the CPU.
    #[error("{device} gave a wrong result: do not use it; check its cooling, memory and driver")]
    WrongResult {
        /// The device.
        device: DeviceId,
    },
    /// A kernel failed a known-answer test and will not be used.
    #[error("{kernel} on {device} failed its self-test ({test}): it will not be used; please report this")]
    SelfTest {
        /// The kernel.
        kernel: String,
        /// The device.
        device: DeviceId,
        /// The test that failed.
        test: String,
    },
}
