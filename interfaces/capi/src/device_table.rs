//! Batches that arrays in device memory describe: keys, nonces, lengths, tags and statuses stay on the device.

use std::ffi::{c_int, c_void};
use std::thread::{self, ThreadId};

use lockstep::hazmat::KeySize;
use lockstep::hazmat::backend::Completion as WorkCompletion;
use lockstep::hazmat::planner::Planner;
use lockstep::hazmat::timing::Shape;
use lockstep::hazmat::work::{Operation, Table};

use crate::device::{DeviceRange, handle};
use crate::engine::Engine;
use crate::error::{Failure, LOCKSTEP_ERROR_ORDER, LOCKSTEP_ERROR_UNSUPPORTED, Outcome, ensure};
use crate::{aead, cipher, ffi};

/// Messages that arrays in memory of one device describe. Integers are 64-bit little-endian. Message i is read at
/// `from + offsets[i]`, written at `to + offsets[i]`, and has `lengths[i]` bytes. The arrays must not overlap each other or the
/// data; the messages must not overlap.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct DeviceTable {
    /// sizeof(lockstep_device_table)
    pub size: usize,
    /// The number of messages.
    pub messages: usize,
    /// The length of each AES key in bytes: 16, 24 or 32.
    pub key_len: usize,
    /// An upper bound of the lengths of messages in bytes. A longer message is not processed.
    pub longest: usize,
    /// Raw keys: one key for each message, or a single key for all messages. In XTS the data key is followed by the tweak
    /// key.
    pub keys: DeviceRange,
    /// 16 bytes for each message. For a mode without authentication: the IV, which the call updates. For an authenticated
    /// mode: a nonce of 12 bytes, and 4 bytes that are not used.
    pub states: DeviceRange,
    /// The offset of each message.
    pub offsets: DeviceRange,
    /// The length of each message.
    pub lengths: DeviceRange,
    /// The input.
    pub from: DeviceRange,
    /// The output: the same part as the input, or a separate part of the same length.
    pub to: DeviceRange,
    /// 16 bytes for each message: the tag, written or compared. Only for authenticated modes.
    pub tags: DeviceRange,
    /// One byte for each message, written by the device: a number LOCKSTEP_STATUS_. The status of a message that is outside
    /// of the data, or whose length the mode does not accept, is LOCKSTEP_STATUS_PENDING.
    pub status: DeviceRange,
}

// SAFETY: the structure is `repr(C)`, its first member is a `usize`, and zeros are valid.
ffi::impl_options!(DeviceTable, "lockstep_device_table": size messages key_len longest keys states offsets lengths from to tags status);

/// Work that was started on a device. Only the thread that has started the work may use this object.
pub struct Completion {
    /// Dropped before the engine, whose planner it borrows.
    work: WorkCompletion<'static>,
    engine: Engine,
    starter: ThreadId,
}

/// Starts an authenticated mode on the messages of a table, on a stream of the device (NULL: the default stream). The mode is
/// LOCKSTEP_AEAD_GCM, LOCKSTEP_AEAD_GCM_SIV or LOCKSTEP_AEAD_OCB, if the device supports this mode. The messages have no
/// associated data. The direction is LOCKSTEP_ENCRYPT or LOCKSTEP_DECRYPT. If `completion` is NULL, the call waits for the
/// end of the work.
///
/// Errors: LOCKSTEP_ERROR_UNSUPPORTED, LOCKSTEP_ERROR_OUTPUT if an array is too short, LOCKSTEP_ERROR_OUT_OF_REACH; errors of
/// devices. A wrong tag is not an error of the call: it is reported by the status of the message, whose output is zeroed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_device_table_aead(
    engine: *const Engine,
    aead: c_int,
    direction: c_int,
    table: *const DeviceTable,
    stream: *mut c_void,
    completion: *mut *mut Completion,
) -> c_int {
    let operation = || {
        let (mode, direction) = (aead::mode(aead)?, cipher::direction(direction)?);
        let fused = mode.row().fused.ok_or_else(|| {
            let message = format!("{mode} has no tables in device memory: use GCM, or lockstep_device_seal");
            Failure::new(LOCKSTEP_ERROR_UNSUPPORTED, message)
        })?;
        Ok(Operation::Fused(fused[direction as usize]))
    };
    start(engine, operation, table, stream, completion)
}

/// Starts a mode without authentication on the messages of a table, on a stream of the device (NULL: the default stream). If
/// `completion` is NULL, the call waits for the end of the work. In XTS a message is a data unit of whole blocks.
///
/// Errors: those of lockstep_device_table_aead.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_device_table_cipher(
    engine: *const Engine,
    cipher: c_int,
    direction: c_int,
    table: *const DeviceTable,
    stream: *mut c_void,
    completion: *mut *mut Completion,
) -> c_int {
    let operation = || Ok(Operation::Pass(cipher::mode(cipher)?.pass(cipher::direction(direction)?)));
    start(engine, operation, table, stream, completion)
}

/// Returns 1 if lockstep_completion_wait would not block, otherwise 0. Also returns 0 on a thread that did not start the
/// work.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_completion_is_ready(completion: *const Completion) -> c_int {
    let mut is_ready = false;
    // If the call fails, the result remains 0: the work does not count as ready.
    let _ = ffi::call(|_| {
        let completion = ffi::object(completion, "the completion")?;
        completion.check_caller()?;
        is_ready = completion.work.is_ready();
        Ok(())
    });
    c_int::from(is_ready)
}

/// Waits for work, and frees its completion, even if the work has failed. On a thread that did not start the work, nothing
/// happens, and the result is LOCKSTEP_ERROR_ORDER.
///
/// Errors: LOCKSTEP_ERROR_DEVICE; LOCKSTEP_ERROR_ORDER.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_completion_wait(completion: *mut Completion) -> c_int {
    ffi::call(|_| {
        let started = ffi::object(completion, "the completion")?;
        // In a child process this check fails, so that the completion is leaked, for the reason that `free_with_engine`
        // states.
        started.check_caller()?;
        // SAFETY: by the contract of `ffi`, `new_object` got the pointer from `Box::into_raw`, and the pointer is not used
        // after this call.
        let completion = unsafe { Box::from_raw(completion) };
        completion.wait()
    })
}

unsafe fn start(
    engine: *const Engine,
    operation: impl FnOnce() -> Outcome<Operation>,
    table: *const DeviceTable,
    stream: *mut c_void,
    completion: *mut *mut Completion,
) -> c_int {
    let begin = || {
        let operation = operation()?;
        ffi::check_pointer(table, "the table")?;
        let (engine, table) = (ffi::object(engine, "the engine")?, ffi::options(table)?);
        begin(engine, operation, convert(&table, operation)?, stream)
    };
    match completion.is_null() {
        true => ffi::call(|_| begin()?.wait()),
        false => ffi::new_object(completion, |_| begin()),
    }
}

fn begin(engine: &Engine, operation: Operation, table: Table, stream: *mut c_void) -> Outcome<Completion> {
    let engine = engine.clone();
    let work = engine.run(|inner| {
        let planner: *const Planner = inner.planner();
        // SAFETY: the completion contains a clone of the engine, which keeps the planner alive, and which is dropped after
        // the work.
        let planner: &'static Planner = unsafe { &*planner };
        let (key, shape) = (table.key_size, shape(&table));
        let plan = planner.plan(operation, key, shape, Some(table.from.device()))?;
        Ok(plan.device.submit_table(plan.kernel, handle(stream), operation, &table)?)
    })?;
    Ok(Completion { work, engine, starter: thread::current().id() })
}

/// The sizes from which the planner estimates times. The lengths of the messages are only on the device, so each message
/// counts as `longest` bytes. The total is at most the length of the data.
fn shape(table: &Table) -> Shape {
    let bytes = table.longest.saturating_mul(table.messages).min(table.from.len());
    Shape { messages: table.messages, bytes, longest: table.longest.min(table.from.len()) }
}

unsafe fn convert(table: &DeviceTable, operation: Operation) -> Outcome<Table> {
    let key_size = KeySize::ALL.into_iter().find(|size| size.bytes() == table.key_len);
    let what = || format!("`key_len` of the table is {}: AES keys have 16, 24 or 32 bytes", table.key_len);
    let key_size = key_size.ok_or_else(|| Failure::argument(what()))?;
    let has_tags = matches!(operation, Operation::Fused(_));
    let tags = has_tags.then(|| table.tags.slice("the buffer of the tags")).transpose()?;
    Ok(Table {
        messages: table.messages,
        key_size,
        keys: table.keys.slice("the buffer of the keys")?,
        states: table.states.slice("the buffer of the states")?,
        offsets: table.offsets.slice("the buffer of the offsets")?,
        lengths: table.lengths.slice("the buffer of the lengths")?,
        longest: table.longest,
        from: table.from.slice("the buffer of the input")?,
        to: table.to.slice("the buffer of the output")?,
        tags,
        status: table.status.slice("the buffer of the statuses")?,
    })
}

impl Completion {
    /// Fails unless the calling process and thread are those that started the work.
    fn check_caller(&self) -> Outcome<()> {
        let message = "the work was started on another thread: wait for it on the thread that started it";
        let is_starter = self.starter == thread::current().id();
        ensure(is_starter, || Failure::new(LOCKSTEP_ERROR_ORDER, message))?;
        self.engine.check_process()
    }

    fn wait(self) -> Outcome<()> {
        let Completion { work, engine, .. } = self;
        engine.run(|_| Ok(work.wait()?))
    }
}
