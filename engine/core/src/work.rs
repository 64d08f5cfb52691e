//! Work for a device: passes over segments, and fused AEADs over messages.

use crate::data::{Data, DeviceSlice};
use crate::error::{Error, Result};
use crate::key::{Block, Key, KeySize};
use crate::lengths::{ALL_TAGS, FULL_TAGS, Lengths, NONCES_OF_12, check_limit};
pub use crate::tag::{Status, Tag};
use crate::{gcm, ocb};

/// The data-parallel or serial steps of which modes consist.
///
/// A pass processes [`Segment`]s: parts of messages, with the chaining state that links a part to the next. In the
/// descriptions of the passes, "Blocks" means that the length must be a multiple of 16 bytes, and "Bytes" means that any
/// length is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pass {
    /// Blocks; no chaining state.
    EcbEncrypt,
    /// Blocks; no chaining state.
    EcbDecrypt,
    /// Bytes. The chaining state is a 128-bit big-endian counter. It advances by one for each block, including a partial
    /// block.
    Ctr,
    /// Bytes. Like `Ctr`, but only the last 32 bits are incremented (GCM, SP 800-38D, 6.2).
    Ctr32,
    /// Bytes. Like `Ctr`, but the first 32 bits are incremented, as a little-endian number (GCM-SIV, RFC 8452, section 4).
    CtrLittle32,
    /// Blocks; the chaining state is the last ciphertext block. Serial.
    CbcEncrypt,
    /// Blocks; the chaining state is the last ciphertext block.
    CbcDecrypt,
    /// Bytes; the chaining state is the last ciphertext block. A partial block ends the message. Serial.
    Cfb128Encrypt,
    /// Bytes; the chaining state is the last ciphertext block. A partial block ends the message.
    Cfb128Decrypt,
    /// Bytes; the chaining state is the last 16 bytes of ciphertext. Serial.
    Cfb8Encrypt,
    /// Bytes; the chaining state is the last 16 bytes of ciphertext. Serial.
    Cfb8Decrypt,
    /// Bytes, eight steps each; the chaining state is the last 128 bits of ciphertext. Serial.
    Cfb1Encrypt,
    /// Bytes, eight steps each; the chaining state is the last 128 bits of ciphertext. Serial.
    Cfb1Decrypt,
    /// Bytes; the chaining state is the last keystream block. A partial block ends the message. Serial.
    Ofb,
    /// Blocks; the chaining state is the last plaintext block XOR the last ciphertext block. Serial.
    PcbcEncrypt,
    /// Blocks; the chaining state is the last plaintext block XOR the last ciphertext block, as in `PcbcEncrypt`. Serial.
    PcbcDecrypt,
    /// Blocks, read-only; the chaining state is the running MAC. Serial.
    CbcMac,
    /// Blocks. The chaining state is the tweak of the data unit and does not change. The position in the unit is in
    /// [`Tweak`].
    XtsEncrypt,
    /// Blocks. Chaining state and position as in `XtsEncrypt`.
    XtsDecrypt,
    /// Blocks, read-only; the chaining state is the running hash. The hash key is derived from the AES key of the segment.
    Ghash,
    /// Blocks, read-only; the chaining state is the running hash (RFC 8452, section 3). The hash key is the key of the segment
    /// itself, which has 16 bytes.
    Polyval,
}

impl Pass {
    /// All passes.
    pub const ALL: [Pass; 21] = [
        Pass::EcbEncrypt,
        Pass::EcbDecrypt,
        Pass::Ctr,
        Pass::Ctr32,
        Pass::CtrLittle32,
        Pass::CbcEncrypt,
        Pass::CbcDecrypt,
        Pass::Cfb128Encrypt,
        Pass::Cfb128Decrypt,
        Pass::Cfb8Encrypt,
        Pass::Cfb8Decrypt,
        Pass::Cfb1Encrypt,
        Pass::Cfb1Decrypt,
        Pass::Ofb,
        Pass::PcbcEncrypt,
        Pass::PcbcDecrypt,
        Pass::CbcMac,
        Pass::XtsEncrypt,
        Pass::XtsDecrypt,
        Pass::Ghash,
        Pass::Polyval,
    ];

    /// The unit of the length in bytes, whether the pass is serial, and whether it is read-only.
    const fn properties(self) -> (usize, bool, bool) {
        use Pass::*;
        match self {
            EcbEncrypt | EcbDecrypt | CbcDecrypt | XtsEncrypt | XtsDecrypt => (16, false, false),
            Ctr | Ctr32 | CtrLittle32 | Cfb128Decrypt => (1, false, false),
            CbcEncrypt | PcbcEncrypt | PcbcDecrypt => (16, true, false),
            Cfb128Encrypt | Cfb8Encrypt | Cfb8Decrypt | Cfb1Encrypt | Cfb1Decrypt | Ofb => (1, true, false),
            CbcMac => (16, true, true),
            Ghash | Polyval => (16, false, true),
        }
    }

    /// The length of a segment must be a multiple of this many bytes.
    pub const fn unit(self) -> usize {
        self.properties().0
    }

    /// True if each block depends on the block before, so that only several messages can be processed in parallel.
    pub const fn is_serial(self) -> bool {
        self.properties().1
    }

    /// True if the chaining state is the only output of the pass.
    pub const fn is_read_only(self) -> bool {
        self.properties().2
    }

    /// True if keys may have this size. The key of POLYVAL is a hash key, which always has 16 bytes.
    pub const fn takes_key(self, size: KeySize) -> bool {
        !matches!(self, Pass::Polyval) || matches!(size, KeySize::Aes128)
    }

    /// True for the two XTS passes, whose segments carry a [`Tweak`].
    pub const fn is_xts(self) -> bool {
        matches!(self, Pass::XtsEncrypt | Pass::XtsDecrypt)
    }
}

/// AEADs that a kernel may do in one operation. If no kernel supports this, modes compose the AEAD of passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FusedAead {
    /// GCM encryption (SP 800-38D, 7.1) with a 96-bit IV.
    GcmSeal,
    /// GCM decryption (SP 800-38D, 7.2) with a 96-bit IV: the tag is checked in constant time before the plaintext
    /// is released; the output of a message with a wrong tag is zeroed.
    GcmOpen,
    /// OCB3 encryption (RFC 7253, 4.2) with a nonce of 1 to 15 bytes.
    OcbSeal,
    /// OCB3 decryption (RFC 7253, 4.3) with a nonce of 1 to 15 bytes: the same conditions as for `GcmOpen`.
    OcbOpen,
    /// GCM-SIV encryption (RFC 8452, section 4) with a nonce of 12 bytes and a tag of 16 bytes.
    GcmSivSeal,
    /// GCM-SIV decryption (RFC 8452, section 5) with a nonce of 12 bytes and a tag of 16 bytes: the same conditions as for
    /// `GcmOpen`.
    GcmSivOpen,
}

impl FusedAead {
    /// All fused AEADs.
    pub const ALL: [FusedAead; 6] = [
        FusedAead::GcmSeal,
        FusedAead::GcmOpen,
        FusedAead::OcbSeal,
        FusedAead::OcbOpen,
        FusedAead::GcmSivSeal,
        FusedAead::GcmSivOpen,
    ];

    /// True for decryption.
    pub const fn opens(self) -> bool {
        matches!(self, FusedAead::GcmOpen | FusedAead::OcbOpen | FusedAead::GcmSivOpen)
    }

    /// The encryption of the same AEAD.
    pub const fn sealing(self) -> FusedAead {
        match self {
            FusedAead::GcmSeal | FusedAead::GcmOpen => FusedAead::GcmSeal,
            FusedAead::OcbSeal | FusedAead::OcbOpen => FusedAead::OcbSeal,
            FusedAead::GcmSivSeal | FusedAead::GcmSivOpen => FusedAead::GcmSivSeal,
        }
    }

    /// Checks the lengths of nonce, tag, data and associated data. A device that gets a message without a
    /// mode calls this function first.
    ///
    /// # Errors
    /// [`Error::IvLength`], [`Error::TagLength`], [`Error::TooLong`].
    #[inline]
    pub fn check_lengths(self, message: &AeadMessage<'_>) -> Result<()> {
        let (mode, nonces, tags, _, most_aad) = self.limits();
        nonces.check_nonce(mode, message.nonce.len())?;
        tags.check_tag(mode, message.tag.len())?;
        self.check_data_len(message.data.len())?;
        check_limit(mode, "associated data", message.aad.len() as u64, most_aad)
    }

    /// Checks the length of the data of a message.
    ///
    /// # Errors
    /// [`Error::TooLong`].
    #[inline]
    pub fn check_data_len(self, len: usize) -> Result<()> {
        let (mode, _, _, most_data, _) = self.limits();
        check_limit(mode, "data", len as u64, most_data)
    }

    /// The name, the lengths of nonces and tags, and the maximum lengths of data and associated data in bytes.
    #[inline]
    const fn limits(self) -> (&'static str, Lengths, Lengths, u64, u64) {
        use FusedAead::*;
        match self {
            GcmSeal | GcmOpen => ("GCM", NONCES_OF_12, ALL_TAGS, gcm::MAX_DATA, gcm::MAX_AAD_OR_IV),
            OcbSeal | OcbOpen => ("OCB", ocb::NONCES, ALL_TAGS, ocb::MAX_DATA, ocb::MAX_DATA),
            GcmSivSeal | GcmSivOpen => {
                ("GCM-SIV", NONCES_OF_12, FULL_TAGS, gcm::MAX_GCM_SIV, gcm::MAX_GCM_SIV)
            }
        }
    }
}

/// A pass or a fused AEAD. A kernel supports whole operations, its cost is stated for each operation, and the planner
/// chooses a kernel for each operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// A pass.
    Pass(Pass),
    /// A fused AEAD.
    Fused(FusedAead),
}

impl Operation {
    /// The number of operations.
    pub const COUNT: usize = Pass::ALL.len() + FusedAead::ALL.len();

    /// All operations.
    pub fn all() -> impl Iterator<Item = Operation> {
        let passes = Pass::ALL.into_iter().map(Operation::Pass);
        passes.chain(FusedAead::ALL.into_iter().map(Operation::Fused))
    }

    /// An index below [`Operation::COUNT`], for tables.
    pub const fn index(self) -> usize {
        match self {
            Operation::Pass(pass) => pass as usize,
            Operation::Fused(fused) => Pass::ALL.len() + fused as usize,
        }
    }

    /// True if keys may have this size.
    pub const fn takes_key(self, size: KeySize) -> bool {
        match self {
            Operation::Pass(pass) => pass.takes_key(size),
            Operation::Fused(_) => true,
        }
    }

    /// The largest size of a key.
    pub const fn largest_key(self) -> KeySize {
        if self.takes_key(KeySize::Aes256) { KeySize::Aes256 } else { KeySize::Aes128 }
    }

    /// True if data are read but not written.
    pub const fn is_read_only(self) -> bool {
        matches!(self, Operation::Pass(pass) if pass.is_read_only())
    }

    /// The error of a kernel that does not support the operation.
    pub fn unsupported_by(self, kernel: &'static str) -> Error {
        Error::Unsupported { kernel, operation: self.words() }
    }

    /// The operation in the words of users, for messages and reports: `GCM encryption`.
    pub fn words(self) -> String {
        let name = self.to_string();
        let ends = [
            ("Encrypt", "encryption"),
            ("Seal", "encryption"),
            ("Decrypt", "decryption"),
            ("Open", "decryption"),
        ];
        let direction = ends.into_iter().find_map(|(end, words)| Some((name.strip_suffix(end)?, words)));
        let stem = direction.map_or(&*name, |(stem, _)| stem);
        let mode = match stem {
            "Ctr32" => "CTR of GCM".into(),
            "CtrLittle32" => "CTR of GCM-SIV".into(),
            "Cfb128" => "CFB".into(),
            "CbcMac" => "CBC-MAC".into(),
            "GcmSiv" => "GCM-SIV".into(),
            other => other.to_uppercase(),
        };
        direction.map_or(mode.clone(), |(_, words)| format!("{mode} {words}"))
    }
}

/// The name of the variant, which files of measurements and JSON contain. [`Operation::words`] is for messages.
impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Operation::Pass(pass) => write!(f, "{pass:?}"),
            Operation::Fused(fused) => write!(f, "{fused:?}"),
        }
    }
}

/// A part of one message for a pass. A call may contain several parts of one message only if the chaining state of each part
/// is known in advance. This is the case for ECB, CTR and XTS. It is also the case for CBC and CFB decryption, where the
/// state is the preceding ciphertext block.
pub struct Segment<'d> {
    /// The key; for XTS the data key.
    pub key: &'d Key,
    /// For XTS only: the tweak key and the position in the data unit.
    pub tweak: Option<Tweak<'d>>,
    /// IV, counter, tweak or running MAC: see [`Pass`]. The device updates it to the state with which the next segment must
    /// start.
    pub state: &'d mut Block,
    /// The data; their length is a multiple of [`Pass::unit`].
    pub data: Data<'d>,
}

impl std::fmt::Debug for Segment<'_> {
    /// Prints no chaining state, which can be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Segment").field("key", &self.key).field("data", &self.data).finish_non_exhaustive()
    }
}

/// XTS: the position of a segment in its data unit.
#[derive(Debug, Clone, Copy)]
pub struct Tweak<'d> {
    /// The key that encrypts the tweak.
    pub key: &'d Key,
    /// Blocks of the data unit before this segment.
    pub position: u64,
}

/// One message for a fused AEAD.
pub struct AeadMessage<'d> {
    /// The key.
    pub key: &'d Key,
    /// The IV or nonce. Fused GCM takes 12 bytes. For other lengths, the mode composes GCM of passes.
    pub nonce: &'d [u8],
    /// Associated data.
    pub aad: &'d [u8],
    /// Sealing reads plaintext and writes ciphertext. Opening does the reverse.
    pub data: Data<'d>,
    /// The tag, which is written when sealing and compared when opening. The mode must allow its length.
    pub tag: Tag<'d>,
    /// The outcome, which is set when the completion has been waited for.
    pub status: Status,
}

impl std::fmt::Debug for AeadMessage<'_> {
    /// Prints no content of buffers.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AeadMessage")
            .field("key", &self.key)
            .field("data", &self.data)
            .finish_non_exhaustive()
    }
}

impl<'d> AeadMessage<'d> {
    /// A shorter-lived handle on the same message. The handle has a separate status.
    pub fn reborrow(&mut self) -> AeadMessage<'_> {
        AeadMessage {
            key: self.key,
            nonce: self.nonce,
            aad: self.aad,
            data: self.data.reborrow(),
            tag: self.tag.reborrow(),
            status: self.status,
        }
    }

    /// After an error, marks the message as not processed. Also zeroes the tag if `delivered` is true, because it may have been
    /// written.
    pub fn invalidate(&mut self, delivered: bool) {
        self.status = Status::Pending;
        if let (Tag::Write(tag), true) = (&mut self.tag, delivered) {
            tag.fill(0);
        }
    }
}

/// Messages that are described by arrays in device memory. The host does not know the contents of the arrays.
///
/// Integers are 64-bit little-endian. Segment `i` is read at `from + offsets[i]`, written at `to + offsets[i]`, and
/// has `lengths[i]` bytes.
#[derive(Debug, Clone)]
pub struct Table {
    /// The number of messages.
    pub messages: usize,
    /// The size of all keys.
    pub key_size: KeySize,
    /// Raw keys, one for each message, or a single key for all messages. For XTS, the data key is followed by the tweak key.
    pub keys: DeviceSlice,
    /// 16 bytes for each message: the chaining states of a pass (updated), or the 96-bit IVs of a fused AEAD with 4 bytes unused.
    pub states: DeviceSlice,
    /// The offset of each message.
    pub offsets: DeviceSlice,
    /// The length of each message.
    pub lengths: DeviceSlice,
    /// The length of the longest message, or an upper bound. It determines the size of the launch.
    pub longest: usize,
    /// The input.
    pub from: DeviceSlice,
    /// The output: the range of the input, or a range disjoint from it.
    pub to: DeviceSlice,
    /// For fused AEADs: a tag of 16 bytes for each message, which is written or compared.
    pub tags: Option<DeviceSlice>,
    /// One [`Status`] byte for each message, which the device writes.
    pub status: DeviceSlice,
}

/// An execution stream of a device: work on one stream runs in order. The default stream has the number 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stream(u64);

impl Stream {
    /// The stream with this number. The backend defines the numbers (CUDA: the stream's handle).
    ///
    /// # Safety
    /// A number other than 0 must be that of a stream of the device that gets the work. The stream must exist until all work
    /// and all copies that were given this value have ended.
    #[allow(unsafe_code, reason = "only the caller knows whether a handle of a driver is valid")]
    pub const unsafe fn from_raw(number: u64) -> Stream {
        Stream(number)
    }

    /// The number of the stream.
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// The work of one call.
#[derive(Debug)]
pub struct Work<'w, 'd> {
    /// The stream that orders work on device memory; ignored for host memory.
    pub stream: Stream,
    /// The task.
    pub task: Task<'w, 'd>,
}

/// A pass over segments, or a fused AEAD over messages. The methods give access to both by index.
#[derive(Debug)]
pub enum Task<'w, 'd> {
    /// One pass over many segments of many messages.
    Pass(Pass, &'w mut [Segment<'d>]),
    /// One fused AEAD over many messages.
    Fused(FusedAead, &'w mut [AeadMessage<'d>]),
}

impl Task<'_, '_> {
    /// The operation.
    pub fn operation(&self) -> Operation {
        match self {
            Task::Pass(pass, _) => Operation::Pass(*pass),
            Task::Fused(fused, _) => Operation::Fused(*fused),
        }
    }

    /// The size of the keys. `None` if there are no messages.
    pub fn key_size(&self) -> Option<KeySize> {
        (!self.is_empty()).then(|| self.key(0).size())
    }
}

impl<'w, 'd> From<Task<'w, 'd>> for Work<'w, 'd> {
    /// Makes work on the default stream.
    fn from(task: Task<'w, 'd>) -> Self {
        Work { stream: Stream::default(), task }
    }
}

#[cfg(test)]
mod tests;
