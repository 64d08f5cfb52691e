//! The functions of ciphers (provider-cipher(7)). There is one set of functions for each type of context. The number of the
//! algorithm is a const parameter of these functions.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;
use std::slice;

use super::guard::guarded;
use super::table::{self, END_OF_TABLE, instance};
use crate::algorithm::{ALGORITHMS, Algorithm, Mode};
use crate::cipher::{Cbc, Ccm, Cipher, Common, Ctr, Cts, Ecb, Feedback, Gcm, GcmSiv, Ocb, Siv, Wrap, Xts};
use crate::libcrypto::buffers::Buffers;
use crate::libcrypto::param::{Param, iter_get_params, iter_set_params, list};
use crate::libcrypto::types::{Dispatch, OsslParam};
use crate::reason::{Outcome, Reason};
use crate::report::EntryPoint;
use crate::resources::Resources;
use crate::system::object;
use crate::system::stack::{run_and_wipe, wipe_copies_of};

/// The property definition of the algorithms. It does not contain `fips=yes`, because the code is not validated.
pub(super) const PROPERTIES: &CStr = c"provider=lockstep";

/// The object behind OpenSSL's context pointer.
struct Context<C> {
    cipher: C,
    guard: Guard,
}

/// The calls on a context that are guarded against panics.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Guard {
    /// All calls except short calls. A panic in a short call, which would be a bug in this crate, does not unwind into C: Rust aborts the
    /// process if a panic reaches the boundary of an `extern "C"` function. OpenSSL makes four calls for a message of one block, so guards
    /// would take a considerable part of its time. Short calls are:
    ///
    /// - an update with a length of at most [`MAX_UNGUARDED`] (bytes, or bits for CFB1 with `use-bits`), whether it processes data,
    ///   processes additional data, sets the length of the message, or queries the length of the output
    /// - an init without parameters that does not change the direction, and that either has no key, or has one that the kernel expands
    ///   without a copy on the stack (`Resources::leaves_keys` is false)
    /// - the final call
    /// - calls that get or set parameters
    ShortCallsUnguarded,
    /// All calls: the planner may process a call on few bytes, the trace counts the calls, or the cipher has no short calls.
    Always,
    /// A call has panicked. The state may then be incomplete, and its use could repeat keystream. Therefore all later calls fail, and
    /// the context can only be freed.
    Broken,
}

/// The functions of algorithm number `ID` with contexts of type `C`.
const fn dispatch<C: Cipher, const ID: usize>() -> [Dispatch; 15] {
    [
        table::cipher::new_context(new_context::<C, ID>),
        table::cipher::encrypt_init(init::<C, true>),
        table::cipher::decrypt_init(init::<C, false>),
        table::cipher::update(update::<C>),
        table::cipher::finish(finish::<C>),
        table::cipher::free_context(free_context::<C>),
        table::cipher::duplicate_context(duplicate_context::<C>),
        table::cipher::get_params(get_params::<ID>),
        table::cipher::get_context_params(get_context_params::<C>),
        table::cipher::set_context_params(set_context_params::<C>),
        table::cipher::gettable_params(gettable_params),
        table::cipher::gettable_context_params(gettable_context_params::<C>),
        table::cipher::settable_context_params(settable_context_params::<C>),
        // A cipher without this function has the end of the table here.
        if C::HAS_ONE_SHOT { table::cipher::one_shot(one_shot::<C>) } else { END_OF_TABLE },
        END_OF_TABLE,
    ]
}

/// Assigns a context type to each algorithm. A row contains the context type, the modes of this type, and the numbers of the
/// algorithms. A compile-time assertion checks the mode of each algorithm.
macro_rules! dispatch_tables {
    ($($context:ident($modes:pat): $($id:literal)*;)*) => {
        /// The functions of each algorithm.
        pub(super) const DISPATCHES: [&[Dispatch; 15]; ALGORITHMS.len()] = [$($(
            {
                assert!(matches!(ALGORITHMS[$id].mode, $modes));
                &const { dispatch::<$context, $id>() }
            },
        )*)*];
    };
}

dispatch_tables! {
    Ecb(Mode::Ecb): 0 1 2;
    Cbc(Mode::Cbc): 3 4 5;
    Feedback(Mode::Cfb128 | Mode::Cfb8 | Mode::Cfb1 | Mode::Ofb): 6 7 8 9 10 11 12 13 14 15 16 17;
    Ctr(Mode::Ctr): 18 19 20;
    Xts(Mode::Xts): 21 22;
    Gcm(Mode::Gcm): 23 24 25;
    Ccm(Mode::Ccm): 26 27 28;
    Ocb(Mode::Ocb): 29 30 31;
    GcmSiv(Mode::GcmSiv): 32 33 34;
    Siv(Mode::Siv): 35 36 37;
    Cts(Mode::CbcCts): 38 39 40;
    Wrap(Mode::Wrap | Mode::WrapPad | Mode::WrapInv | Mode::WrapPadInv): 41 42 43 44 45 46 47 48 49 50 51 52;
}

/// Returns the context to which a pointer of OpenSSL points.
///
/// # Safety
/// `context` comes from an object of [`object::allocate`] with the same `C`, has not been freed, and is used by one caller at a time.
#[inline(always)]
unsafe fn context<'a, C>(context: *mut c_void) -> &'a mut Context<C> {
    // SAFETY: guaranteed by the caller.
    unsafe { &mut *context.cast::<Context<C>>() }
}

impl<C: Cipher> Context<C> {
    #[cold]
    fn raise(&self, reason: Reason, at: EntryPoint) {
        let Common { instance, algorithm, .. } = self.cipher.common();
        instance.resources.core.raise_entries(reason, reason.entries(algorithm.mode, at));
    }

    /// Begins an update: counts it, if there is a trace, and returns the number of bytes of input. If there is a trace, all calls are
    /// guarded, and `guard` is [`Guard::Broken`] during a guarded call. The comparison of `guard` therefore lets the compiler remove the
    /// code for the trace from short calls.
    #[inline(always)]
    fn begin_update(&mut self, input: *const u8, len: usize) -> usize {
        let bytes = self.cipher.begin_update(len);
        let Common { instance, algorithm, encrypts, .. } = self.cipher.common();
        if self.guard != Guard::ShortCallsUnguarded
            && let Some(trace) = &instance.resources.trace
        {
            // A call without input only sets the length of the message, so it is counted with 0 bytes.
            trace.count(algorithm, *encrypts, if input.is_null() { 0 } else { bytes });
        }
        bytes
    }

    /// Processes additional data, or sets the length of the message if the input pointer is null. Returns `len`.
    ///
    /// # Safety
    /// `input` is null or valid for reads of `len` bytes (`len` bits if the context counts bits), which nothing else writes during the call.
    #[inline(always)]
    unsafe fn process_without_output(&mut self, input: *const u8, len: usize) -> Outcome<usize> {
        let bytes = self.begin_update(input, len);
        let outcome = if input.is_null() {
            self.cipher.set_message_len(len)
        } else if bytes > isize::MAX as usize {
            Err(Reason::Length)
        } else {
            // SAFETY: guaranteed by the caller.
            self.cipher.aad(unsafe { slice::from_raw_parts(input, bytes) })
        };
        outcome.map(|()| len)
    }

    /// Returns the status for OpenSSL: 1 for success, 0 for a failure. After a failure, puts the entries of the reason on the
    /// error stack.
    #[inline(always)]
    fn to_status(&self, outcome: Outcome<()>, at: EntryPoint) -> c_int {
        c_int::from(outcome.inspect_err(|reason| self.raise(*reason, at)).is_ok())
    }
}

/// Maximum length of an update that is a short call ([`Guard::ShortCallsUnguarded`]).
const MAX_UNGUARDED: usize = 256;

/// The guard of a new context. An update of [`MAX_UNGUARDED`] bytes may also process a buffered block.
fn initial_guard<C: Cipher>(Resources { threshold, trace, .. }: &Resources) -> Guard {
    let has_short_calls = C::HAS_SHORT_CALLS && *threshold > MAX_UNGUARDED + 16 && trace.is_none();
    if has_short_calls { Guard::ShortCallsUnguarded } else { Guard::Always }
}

/// Runs a call on a context and reports its error, if any. After a panic, all later calls fail. It is a function of its own, so that
/// the code for calls that are not guarded stays short.
///
/// # Safety
/// The requirements of [`context`].
#[inline(never)]
unsafe fn call<C: Cipher>(
    pointer: *mut c_void,
    at: EntryPoint,
    body: impl FnOnce(&mut Context<C>) -> Outcome<()>,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    let context = unsafe { context::<C>(pointer) };
    let guard = std::mem::replace(&mut context.guard, Guard::Broken);
    if guard == Guard::Broken {
        return context.to_status(Err(Reason::Internal), at);
    }
    let outcome = guarded(Err(Reason::Internal), || {
        let outcome = body(context);
        context.guard = guard;
        outcome
    });
    context.to_status(outcome, at)
}

/// Runs a call that is a short call if a condition is true. The macro contains the body twice, so that the compiler inlines it if it is
/// not guarded.
macro_rules! short_call {
    ($pointer:expr, $at:ident, $is_short:expr, |$context:ident| $body:expr) => {{
        // SAFETY: OpenSSL passes a context of this provider.
        let $context = unsafe { context::<C>($pointer) };
        if $is_short && $context.guard == Guard::ShortCallsUnguarded {
            let outcome = $body;
            return $context.to_status(outcome, EntryPoint::$at);
        }
        let body = move |$context: &mut Context<C>| $body;
        // SAFETY: as above. The first reference is no longer used.
        unsafe { call($pointer, EntryPoint::$at, body) }
    }};
}

unsafe extern "C" fn new_context<C: Cipher, const ID: usize>(provider: *mut c_void) -> *mut c_void {
    guarded(null_mut(), || {
        // SAFETY: OpenSSL passes the context of the provider, and tears it down after its last cipher, which the new context uses.
        let instance = unsafe { instance(provider) };
        let resources = &instance.resources;
        let (common, guard) = (Common::new(instance, &ALGORITHMS[ID]), initial_guard::<C>(resources));
        let made = object::allocate(|| Context { cipher: C::new(common), guard });
        made.inspect_err(|reason| resources.core.raise(*reason, None))
            .map_or(null_mut(), |made| Box::into_raw(made).cast())
    })
}

unsafe extern "C" fn free_context<C: Cipher>(pointer: *mut c_void) {
    // SAFETY: the context comes from `new_context` or `duplicate_context`, and OpenSSL frees it once. All parts of the context
    // wipe themselves on drop.
    guarded((), || unsafe { object::free::<Context<C>>(pointer) });
}

unsafe extern "C" fn duplicate_context<C: Cipher>(pointer: *mut c_void) -> *mut c_void {
    guarded(null_mut(), || {
        // SAFETY: OpenSSL passes a context of this provider. Several threads may copy the context at the same time, so only a
        // shared reference is created.
        let old = unsafe { &*pointer.cast::<Context<C>>().cast_const() };
        if old.guard == Guard::Broken {
            old.raise(Reason::Internal, EntryPoint::Copy);
            return null_mut();
        }
        let copy = run_and_wipe(old.cipher.common().instance.resources.leaves_keys(), || {
            let cipher = old.cipher.duplicate()?;
            object::allocate(|| Context { cipher: cipher(), ..*old })
        });
        // The stack is wiped only if necessary: wiping takes a tenth of the time of a copy, and programs such as Python's
        // cryptography copy a context for each message.
        if old.cipher.holds_text() {
            wipe_copies_of::<Context<C>>();
        }
        copy.inspect_err(|reason| old.raise(*reason, EntryPoint::Copy))
            .map_or(null_mut(), |copy| Box::into_raw(copy).cast())
    })
}

unsafe extern "C" fn init<C: Cipher, const ENCRYPTS: bool>(
    pointer: *mut c_void,
    key: *const u8,
    key_len: usize,
    iv: *const u8,
    iv_len: usize,
    params: *const OsslParam,
) -> c_int {
    // SAFETY: key and IV are null or have the length that OpenSSL passes.
    let slice = |at: *const u8, len| unsafe { (!at.is_null()).then(|| slice::from_raw_parts(at, len)) };
    // SAFETY: OpenSSL passes a context of this provider.
    let context = unsafe { context::<C>(pointer) };
    let Common { instance, algorithm, encrypts, .. } = context.cipher.common();
    let is_short = context.guard == Guard::ShortCallsUnguarded && *encrypts == ENCRYPTS && params.is_null();
    // The key is a constant in this call of `init`, so that the compiler removes the code that sets a key.
    if is_short && key.is_null() {
        let outcome = context.cipher.init(ENCRYPTS, None, slice(iv, iv_len));
        return context.to_status(outcome, EntryPoint::Init);
    }
    let (key, iv) = (slice(key, key_len), slice(iv, iv_len));
    if key.is_some_and(|key| key.len() != algorithm.key_len) {
        // Nothing changes: a call that fails must not leave a new IV with the old key.
        return context.to_status(Err(Reason::KeyLength), EntryPoint::Init);
    }
    // A change from encryption to decryption may expand the key again.
    let leaves_keys = (key.is_some() || *encrypts != ENCRYPTS) && instance.resources.leaves_keys();
    if is_short && !leaves_keys {
        let outcome = context.cipher.init(ENCRYPTS, key, iv);
        return context.to_status(outcome, EntryPoint::Init);
    }
    let body =
        move |context: &mut Context<C>| run_and_wipe(leaves_keys, || context.cipher.init(ENCRYPTS, key, iv));
    // SAFETY: OpenSSL passes a context of this provider, and null or a valid array. The reference `context` is no longer used.
    unsafe {
        match call(pointer, EntryPoint::Init, body) {
            1 if !params.is_null() => set_context_params::<C>(pointer, params),
            status => status,
        }
    }
}

unsafe extern "C" fn update<C: Cipher>(
    pointer: *mut c_void,
    output: *mut u8,
    written: *mut usize,
    room: usize,
    input: *const u8,
    len: usize,
) -> c_int {
    if output.is_null() {
        // SAFETY: OpenSSL passes arguments that are valid for this function.
        return unsafe { update_without_output::<C>(pointer, written, input, len) };
    }
    short_call!(pointer, Update, len <= MAX_UNGUARDED, |context| {
        let room = context.cipher.output_room(room, len);
        // SAFETY: OpenSSL's caller guarantees that the memory is valid and not accessed by others, and that `written` is null or a valid
        // place for the length.
        unsafe {
            let data = Buffers::new(input, context.begin_update(input, len), output, room);
            return_len(data.and_then(|data| context.cipher.update(data)), written)
        }
    })
}

/// Makes an update whose output pointer is null. It is a function of its own, so that the code for updates with output stays short.
///
/// # Safety
/// The requirements of [`context`] and [`Context::process_without_output`]. `written` is null or a valid place for the length.
#[inline(never)]
unsafe fn update_without_output<C: Cipher>(
    pointer: *mut c_void,
    written: *mut usize,
    input: *const u8,
    len: usize,
) -> c_int {
    short_call!(pointer, Update, len <= MAX_UNGUARDED, |context| {
        let queried = context.cipher.query_output_len(!input.is_null(), len);
        // SAFETY: guaranteed by the caller.
        unsafe { return_len(queried.unwrap_or_else(|| context.process_without_output(input, len)), written) }
    })
}

unsafe extern "C" fn one_shot<C: Cipher>(
    pointer: *mut c_void,
    output: *mut u8,
    written: *mut usize,
    room: usize,
    input: *const u8,
    len: usize,
) -> c_int {
    if input.is_null() && len == 0 {
        // SAFETY: OpenSSL passes arguments that are valid for this function.
        return unsafe { finish::<C>(pointer, output, written, room) };
    }
    // SAFETY: as in `update`.
    let body = |context: &mut Context<C>| unsafe {
        if output.is_null() {
            return return_len(context.process_without_output(input, len), written);
        }
        let data = Buffers::new(input, context.begin_update(input, len), output, room);
        // As in the default provider, the returned length is the length of the input.
        return_len(data.and_then(|data| context.cipher.one_shot(data)).map(|_| len), written)
    };
    // SAFETY: OpenSSL passes a context of this provider.
    unsafe { call(pointer, EntryPoint::OneShot, body) }
}

/// Writes the length of the output to `written`: 0 after a failure.
///
/// # Safety
/// `written` is null or a valid place for the length.
#[inline(always)]
unsafe fn return_len(outcome: Outcome<usize>, written: *mut usize) -> Outcome<()> {
    // SAFETY: guaranteed by the caller.
    if let Some(written) = unsafe { written.as_mut() } {
        *written = outcome.unwrap_or(0);
    }
    outcome.map(|_| ())
}

unsafe extern "C" fn finish<C: Cipher>(
    pointer: *mut c_void,
    output: *mut u8,
    written: *mut usize,
    room: usize,
) -> c_int {
    // If the output pointer is null, there is no output space, even if OpenSSL passes a size other than 0.
    let room = if output.is_null() { 0 } else { room };
    short_call!(pointer, Final, true, |context| {
        // SAFETY: OpenSSL's caller guarantees that the output is valid and not accessed by others.
        let data = unsafe { Buffers::new(output, 0, output, room) };
        let outcome = data.and_then(|data| context.cipher.finish(data));
        let is_null = outcome == Err(Reason::OutputTooSmall) && output.is_null();
        // SAFETY: `written` is null or a valid place for the length.
        unsafe { return_len(if is_null { Err(Reason::NullBuffer) } else { outcome }, written) }
    })
}

unsafe extern "C" fn get_context_params<C: Cipher>(pointer: *mut c_void, params: *mut OsslParam) -> c_int {
    short_call!(pointer, GetParams, true, |context| {
        // SAFETY: OpenSSL passes null or a valid array.
        unsafe { iter_get_params(params) }.try_for_each(|mut param| context.cipher.get(&mut param))
    })
}

unsafe extern "C" fn set_context_params<C: Cipher>(pointer: *mut c_void, params: *const OsslParam) -> c_int {
    short_call!(pointer, SetParams, true, |context| {
        // SAFETY: OpenSSL passes null or a valid array.
        unsafe { iter_set_params(params) }.try_for_each(|param| context.cipher.set(&param))
    })
}

unsafe extern "C" fn get_params<const ID: usize>(params: *mut OsslParam) -> c_int {
    guarded(0, || {
        let Algorithm { mode, mode_number, block_size, iv_len, key_len, .. } = &ALGORITHMS[ID];
        // SAFETY: OpenSSL passes a valid array.
        let outcome = unsafe { iter_get_params(params) }.try_for_each(|mut param| match param.name() {
            Param::Mode => param.number(*mode_number),
            Param::KeyLen => param.number(*key_len as u64),
            Param::IvLen => param.number(*iv_len as u64),
            Param::BlockSize => param.number(*block_size as u64),
            Param::Aead => param.number(u64::from(mode.is_aead())),
            Param::CustomIv => param.number(u64::from(mode.has_custom_iv())),
            Param::Cts => param.number(u64::from(*mode == Mode::CbcCts)),
            Param::TlsMulti | Param::HasRandKey | Param::EncryptThenMac => param.number(0),
            _ => Ok(()),
        });
        c_int::from(outcome.is_ok())
    })
}

unsafe extern "C" fn gettable_params(_provider: *mut c_void) -> *const OsslParam {
    (const { list!(Mode KeyLen IvLen BlockSize Aead CustomIv Cts TlsMulti HasRandKey EncryptThenMac) })
        .as_ptr()
}

unsafe extern "C" fn gettable_context_params<C: Cipher>(
    _context: *mut c_void,
    _provider: *mut c_void,
) -> *const OsslParam {
    C::GETTABLE.as_ptr()
}

unsafe extern "C" fn settable_context_params<C: Cipher>(
    _context: *mut c_void,
    _provider: *mut c_void,
) -> *const OsslParam {
    C::SETTABLE.as_ptr()
}

#[cfg(test)]
mod tests;
