//! Everything that can go wrong, as values: what happened, and what to do about it.

use crate::names::DeviceId;

/// The result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong. Authentication failures carry no detail on purpose.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A key of a length AES does not have.
    #[error("a key of {got} bytes: AES keys have 16, 24 or 32 bytes")]
    KeyLength {
        /// Bytes given.
        got: usize,
    },
    /// A key of a length this mode does not take.
    #[error("{mode} takes {expected}, not a key of {got} bytes")]
    ModeKey {
        /// The mode's name.
        mode: &'static str,
        /// What it takes, in words.
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
        /// What it takes, in words.
        expected: &'static str,
        /// Bytes given.
        got: usize,
    },
    /// A tag length the mode does not have.
    #[error("{mode} has tags of {expected} bytes, not of {got}")]
    TagLength {
        /// The mode's name.
        mode: &'static str,
        /// What it has, in words.
        expected: &'static str,
        /// Bytes asked for.
        got: usize,
    },
    /// Data that must be whole blocks are not.
    #[error("{mode} without padding takes a multiple of 16 bytes; {extra} are left over")]
    NotWholeBlocks {
        /// The mode's name.
        mode: &'static str,
        /// Bytes beyond the last whole block.
        extra: usize,
    },
    /// XTS needs at least one block.
    #[error("XTS takes data units of at least 16 bytes, not of {got}")]
    XtsTooShort {
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
    /// Calls in an order that has no meaning, such as data after the end.
    #[error("{what}")]
    Order {
        /// What was called when it could not be.
        what: &'static str,
    },
    /// Wrong key, nonce, associated data or tag, or changed ciphertext. Nothing was released.
    #[error("authentication failed: wrong key, or the data were changed")]
    AuthenticationFailed,
    /// Bytes that are no PKCS#7 padding. Never report this to an attacker who may choose ciphertexts.
    #[error("the padding is wrong: wrong key or IV, damaged data, or data encrypted without padding")]
    Padding,
    /// Something this device or kernel does not do.
    #[error("{kernel} cannot do {operation}: choose another device or kernel, or leave the choice to `auto`")]
    Unsupported {
        /// The kernel asked for; the backend of the devices asked for if no kernel was named.
        kernel: &'static str,
        /// The operation it lacks.
        operation: String,
    },
    /// A device name nobody knows.
    #[error("no device `{name}`: {known}")]
    UnknownDevice {
        /// What was asked for.
        name: String,
        /// The devices there are, in words.
        known: String,
    },
    /// A kernel name nobody knows, or one this processor cannot run.
    #[error("no kernel `{name}` on {device}: {known}")]
    UnknownKernel {
        /// What was asked for.
        name: String,
        /// The device asked.
        device: DeviceId,
        /// The kernels there are, in words.
        known: String,
    },
    /// A device and a kernel were named that do not fit together.
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
    /// The data lie where this device cannot reach them.
    #[error("{device} cannot reach {what}")]
    OutOfReach {
        /// The device asked.
        device: DeviceId,
        /// What it cannot reach.
        what: String,
    },
    /// A device did not encrypt a message, and did not say why. Its output is worth nothing.
    #[error("a message was not encrypted: discard the output")]
    NotSealed,
    /// The device failed while at work. Output, also in place, is to be taken as lost.
    #[error("{device} failed: {reason}")]
    DeviceFailed {
        /// The device.
        device: DeviceId,
        /// What it said.
        reason: String,
    },
    /// A device gave a result that the processor does not.
    #[error("{device} gave a wrong result: do not use it; check its cooling, memory and driver")]
    WrongResult {
        /// The device.
        device: DeviceId,
    },
    /// A kernel gave a wrong answer to a known question and will not be used.
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
