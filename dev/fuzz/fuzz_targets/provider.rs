//! The provider's entry points, called without libcrypto: any sequence of calls, with any lengths, positions and
//! parameters. No call may access memory out of bounds, each returns a valid result, copies behave like their
//! originals, and data that were encrypted with one sequence of calls are decrypted by any other.
//!
//! The file has more than 600 lines, because a fuzz target is a single source file, and all parts of this target use the same `State`.
#![no_main]

#[path = "../../../interfaces/provider/tests/fake_core/mod.rs"]
mod fake_core;

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};
use std::sync::LazyLock;

use fake_core::{
    Cipher, Context, Core, OCTET_PTR, OCTET_STRING, Param, Provider, Refused, UNMODIFIED, UTF8_PTR,
};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

/// The settings of the instances of the provider. Some instances use the portable kernel, some compute keystream ahead, and some have
/// thresholds so low that short data also go through the planner.
const SETTINGS: [&[(&str, &str)]; 7] = [
    &[],
    &[("kernel", "cpu/soft")],
    &[("ahead", "on")],
    &[("ahead", "on"), ("kernel", "cpu/soft"), ("threshold", "1K"), ("trace", "/dev/null")],
    &[("threshold", "64"), ("threads", "2"), ("verify", "full")],
    &[("threshold", "1"), ("threads", "1"), ("kernel", "cpu/soft"), ("verify", "full")],
    &[("threshold", "64K"), ("device", "cpu"), ("trace", "/dev/null")],
];

static PROVIDERS: LazyLock<Vec<Provider<'static>>> = LazyLock::new(|| {
    let load = |settings| Provider::load(Box::leak(Box::new(Core::new(settings)))).expect("good settings");
    SETTINGS.into_iter().map(load).collect()
});

/// All names of parameters that ciphers of the provider support, and some names that they do not support.
const NAMES: [&CStr; 31] = [
    c"padding",
    c"num",
    c"use-bits",
    c"tls-version",
    c"tls-mac",
    c"tls-mac-size",
    c"keylen",
    c"ivlen",
    c"iv",
    c"updated-iv",
    c"tag",
    c"taglen",
    c"tlsaad",
    c"tlsaadpad",
    c"tlsivfixed",
    c"tlsivinv",
    c"tlsivgen",
    c"iv-generated",
    c"mode",
    c"blocksize",
    c"aead",
    c"custom-iv",
    c"cts",
    c"tls-multi",
    c"has-randkey",
    c"encrypt-then-mac",
    c"rounds",
    c"speed",
    c"randkey",
    c"pipeline-tag",
    c"",
];

/// The largest number of bytes that a parameter reads or writes, even if the parameter states a greater length.
const MAX_IV: usize = 128;

const CANARY: u8 = 0xC5;

fuzz_target!(|input: &[u8]| {
    let mut u = Unstructured::new(input);
    let _ = match u.arbitrary::<u8>() {
        Ok(n) if n % 4 == 0 => round_trip(&mut u),
        Ok(_) => script(&mut u),
        Err(error) => Err(error),
    };
});

fn choose(u: &mut Unstructured<'_>) -> Result<(&'static Provider<'static>, Cipher)> {
    let provider = u.choose(&PROVIDERS)?;
    let index = u.int_in_range(0..=28usize)?;
    Ok((provider, provider.cipher(index).expect("there are 29")))
}

/// `len` pseudo-random bytes, generated from a seed.
fn stretched(u: &mut Unstructured<'_>, len: usize) -> Result<Box<[u8]>> {
    let seed: u64 = u.arbitrary()?;
    let mut state = seed | 1;
    Ok((0..len)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 56) as u8
        })
        .collect())
}

/// A length as programs use them: mostly a short one, often a multiple of the block size or a neighbour of such a multiple.
fn length(u: &mut Unstructured<'_>) -> Result<usize> {
    Ok(match u.int_in_range(0..=9u8)? {
        0 => 0,
        1..=3 => u.int_in_range(1..=40usize)?,
        4..=6 => 16 * u.int_in_range(1..=40usize)?,
        7 => (16 * u.int_in_range(1..=40usize)? + 1) - u.int_in_range(0..=2usize)?,
        8 => u.int_in_range(0..=2000usize)?,
        _ => u.int_in_range(0..=u32::from(u16::MAX) + 100)? as usize,
    })
}

/// A context, and the properties of its state that determine which results of a call are permitted.
struct State<'p> {
    context: Context<'p>,
    /// True if lengths may be in bits instead of bytes.
    bits: bool,
    /// True if the context has an IV, so that GCM does not draw a random one.
    has_iv: bool,
}

/// Calls in any order.
fn script(u: &mut Unstructured<'_>) -> Result<()> {
    let (provider, cipher) = choose(u)?;
    let Ok(context) = provider.context(cipher) else { panic!("memory is not short") };
    let mut states = vec![State { context, bits: false, has_iv: false }];
    for _ in 0..40 {
        if u.is_empty() {
            break;
        }
        let at = u.choose_index(states.len())?;
        let kind = u.int_in_range(0..=15u8)?;
        let outcome = match kind {
            0..=2 => init(u, &mut states[at], kind == 0)?,
            3..=6 => {
                let call = Call::any(u, &states[at])?;
                call.run(&mut states[at]).map(drop)
            }
            7 | 8 => aad_or_length(u, &mut states[at])?,
            9 => finish(u, &mut states[at])?,
            10 | 11 => set(u, &mut states[at])?,
            12 => get(u, &mut states[at])?,
            13 => record(u, &mut states[at])?,
            14 => both(u, &mut states, at)?,
            _ => {
                if states.len() < 4 {
                    let old = &states[at];
                    let context = old.context.duplicate().expect("memory is not short");
                    let (bits, has_iv) = (old.bits, old.has_iv);
                    states.push(State { context, bits, has_iv });
                } else {
                    states.swap_remove(at);
                }
                Ok(())
            }
        };
        if let Err(reason) = outcome {
            let text =
                provider.reason(reason).expect("a reason of the provider's list").to_str().expect("UTF-8");
            for never in ["internal error", "memory", "device", "self test"] {
                assert!(!text.contains(never), "{text}");
            }
        }
    }
    Ok(())
}

fn init(
    u: &mut Unstructured<'_>,
    state: &mut State<'_>,
    any_lengths: bool,
) -> Result<std::result::Result<(), Refused>> {
    let cipher = *state.context.cipher();
    let encrypts = u.arbitrary()?;
    let (key_len, iv_len) = match any_lengths {
        true => (length(u)?.min(100), length(u)?.min(300)),
        false => (cipher.key_len(), cipher.iv_len()),
    };
    let key = if u.ratio(7u8, 8u8)? { Some(stretched(u, key_len)?) } else { None };
    let iv = if u.ratio(7u8, 8u8)? { Some(stretched(u, iv_len)?) } else { None };
    let given = if u.ratio(1u8, 4u8)? { Some(Given::any(u, false)?) } else { None };
    if given.as_ref().is_some_and(Given::makes_bits) {
        state.bits = true;
    }
    let params = given.as_ref().map(|given| [given.param(), Param::END]);
    let params = params.as_ref().map_or(null(), |params| params.as_ptr());
    // SAFETY: the array is null or ends with `Param::END`, and `given` owns the data of its entries.
    let outcome = unsafe { state.context.init_with(encrypts, key.as_deref(), iv.as_deref(), params) };
    state.has_iv |= outcome.is_ok() && iv.is_some();
    Ok(outcome)
}

/// A call that processes data.
#[derive(Clone)]
struct Call {
    once: bool,
    input: Box<[u8]>,
    /// The lengths that the call passes, which may differ from the actual ones.
    len: usize,
    passed_room: usize,
    null_input: bool,
    /// The actual number of bytes of the output buffer.
    room: usize,
    place: Place,
}

/// The position of the output in memory.
#[derive(Clone, Copy)]
enum Place {
    /// In a separate allocation; the output buffer is at the end of this allocation.
    Apart,
    /// Input and output are in the memory of the input, at these two offsets.
    Same { input: usize, output: usize },
}

impl Call {
    fn any(u: &mut Unstructured<'_>, state: &State<'_>) -> Result<Call> {
        let mut len = length(u)?;
        if matches!(state.context.cipher().mode(), "CFB1" | "CFB8") {
            len %= 2100;
        }
        let input = stretched(u, len)?;
        let room = match u.int_in_range(0..=7u8)? {
            0 => u.int_in_range(0..=len)?,
            1 => len,
            2 => len + u.int_in_range(0..=17usize)?,
            _ => len + 32,
        };
        let passed_room = if u.ratio(1u8, 8u8)? && room >= len + 32 {
            *u.choose(&[usize::MAX, isize::MAX as usize, isize::MAX as usize + 1, i32::MAX as usize])?
        } else {
            room
        };
        let null_input = u.ratio(1u8, 16u8)?;
        let len =
            if null_input && u.arbitrary()? { *u.choose(&[0, 1, 16, usize::MAX, 1 << 60])? } else { len };
        let place = match u.int_in_range(0..=3u8)? {
            0 => Place::Apart,
            1 => Place::Same { input: 0, output: 0 },
            _ => {
                let (from, to) = (u.int_in_range(0..=50usize)?, u.int_in_range(0..=50usize)?);
                Place::Same { input: from, output: to }
            }
        };
        Ok(Call { once: u.ratio(1u8, 6u8)?, input, len, passed_room, null_input, room, place })
    }

    /// Makes the call and returns the output.
    fn run(&self, state: &mut State<'_>) -> std::result::Result<Vec<u8>, Refused> {
        let Call { once, ref input, len, passed_room, null_input, room, place } = *self;
        let run = |state: &mut State<'_>, to: *mut u8, from: *const u8| {
            let from = if null_input { null() } else { from };
            // SAFETY: both pointers are valid for the lengths that `Call` has chosen. Where `passed_room` exceeds the actual room, the
            // actual room is at least what a record or message of this length needs.
            unsafe {
                match once {
                    true => state.context.one_shot_raw(to, passed_room, from, len),
                    false => state.context.update_raw(to, passed_room, from, len),
                }
            }
        };
        let (outcome, memory, start) = match place {
            Place::Apart => {
                let before = input.clone();
                let mut output = vec![CANARY; room].into_boxed_slice();
                // The pointer is not null even if the output buffer is empty.
                let outcome = run(state, output.as_mut_ptr(), input.as_ptr());
                assert!(*input == before, "the input was changed");
                (outcome, output, 0)
            }
            Place::Same { input: from, output: to } => {
                let end = (from + input.len()).max(to + room);
                let mut memory = vec![CANARY; end].into_boxed_slice();
                memory[from..from + input.len()].copy_from_slice(input);
                let before = memory.clone();
                let all = memory.as_mut_ptr();
                let outcome = run(state, all.wrapping_add(to), all.wrapping_add(from));
                assert!(memory[..to] == before[..to], "written before the output");
                assert!(memory[to + room..] == before[to + room..], "written behind the output");
                // The call may overwrite as many bytes as it returns or as the input has, whichever number is larger: it also uses the
                // output buffer to move overlapping data and to remove padding.
                let most = match outcome {
                    Ok(written) => written.max(input.len()),
                    Err(_) => input.len(),
                };
                let most = (to + most.min(room)).min(end);
                assert!(state.bits || memory[most..] == before[most..], "written beyond the returned length");
                (outcome, memory, to)
            }
        };
        let is_finish = once && null_input && len == 0;
        match outcome {
            Ok(written) => {
                state.has_iv |= written > 0;
                let bytes = if state.bits && !is_finish { written.div_ceil(8) } else { written };
                if null_input && !is_finish && len == 0 && bytes == 0 {
                    return Ok(Vec::new());
                }
                assert!(bytes <= room, "{bytes} bytes returned for {room} bytes of space");
                Ok(memory[start..start + bytes].to_vec())
            }
            Err(reason) => Err(reason),
        }
    }
}

/// Makes an update without output, which passes additional data or announces the length of the message.
fn aad_or_length(
    u: &mut Unstructured<'_>,
    state: &mut State<'_>,
) -> Result<std::result::Result<(), Refused>> {
    let len = length(u)?;
    let once = u.ratio(1u8, 8u8)?;
    let announces = u.arbitrary()?;
    let aad = if announces { Box::default() } else { stretched(u, len)? };
    let len = if announces && u.ratio(1u8, 8u8)? {
        *u.choose(&[usize::MAX, isize::MAX as usize, 1 << 16, 1 << 24, 1 << 32])?
    } else {
        len
    };
    let input = if announces { null() } else { aad.as_ptr() };
    let room = u.arbitrary::<u8>()?.into();
    // SAFETY: the input is null or a slice. The output pointer is null, so the call writes nothing, whatever space is passed.
    let outcome = unsafe {
        match once {
            true => state.context.one_shot_raw(null_mut(), room, input, len),
            false => state.context.update_raw(null_mut(), room, input, len),
        }
    };
    state.has_iv |= outcome.is_ok() && !announces && len > 0;
    Ok(outcome.map(|_| ()))
}

fn finish(u: &mut Unstructured<'_>, state: &mut State<'_>) -> Result<std::result::Result<(), Refused>> {
    let room = *u.choose(&[16, 16, 16, 0, 1, 15, 17, 32])?;
    let mut output = vec![CANARY; room].into_boxed_slice();
    let is_null = u.ratio(1u8, 8u8)?;
    let pointer = if is_null { null_mut() } else { output.as_mut_ptr() };
    // SAFETY: the pointer is null, or points to `room` bytes.
    let outcome = unsafe { state.context.finish_raw(pointer, room) };
    if let Ok(written) = outcome {
        assert!(written <= if is_null { 0 } else { room });
        assert!(output[written..].iter().all(|byte| *byte == CANARY), "written beyond the returned length");
    } else {
        assert!(output.iter().all(|byte| *byte == CANARY), "written by a call that failed");
    }
    state.has_iv |= outcome.is_ok();
    Ok(outcome.map(|_| ()))
}

/// A parameter and its data.
struct Given {
    name: &'static CStr,
    data_type: u32,
    data: Option<Box<[u8]>>,
    size: usize,
}

impl Given {
    /// Any parameter. The data of a requested parameter have room for every value that the provider may write.
    fn any(u: &mut Unstructured<'_>, asks: bool) -> Result<Given> {
        let name = *u.choose(&NAMES)?;
        let data_type = match u.int_in_range(0..=7u8)? {
            0 => u.int_in_range(0..=9u32)?,
            _ => match name.to_str().expect("UTF-8") {
                "iv" | "updated-iv" | "tag" | "tlsaad" | "tlsivfixed" | "tlsivinv" | "tlsivgen" => {
                    OCTET_STRING
                }
                "tls-mac" => OCTET_PTR,
                "tlsaadpad" | "keylen" | "ivlen" | "taglen" | "padding" | "num" => 2,
                _ => u.int_in_range(1..=2u32)?,
            },
        };
        let size = match (data_type, u.int_in_range(0..=7u8)?) {
            (1 | 2, 0..=5) => *u.choose(&[4, 8])?,
            (_, 0) => u.int_in_range(0..=300usize)?,
            (_, 1) => usize::MAX,
            (_, 2) => 0,
            _ => *u.choose(&[4, 8, 12, 13, 16, 16, 16])?,
        };
        let (len, size) = match size {
            // In a request, size 0 permits any number of bytes, so there is room for the longest value. usize::MAX
            // would permit more bytes than the data have, so it is not requested.
            usize::MAX if asks => (MAX_IV, MAX_IV),
            usize::MAX => (MAX_IV, usize::MAX),
            0 if asks => (MAX_IV, 0),
            size => (size, size),
        };
        // If a value is requested by pointer, the data of the parameter receive a pointer.
        let len = if asks && matches!(data_type, OCTET_PTR | UTF8_PTR) { 8 } else { len };
        let data = if u.ratio(1u8, 16u8)? {
            None
        } else if matches!(data_type, 1 | 2) && !asks {
            // The number is arbitrary, a protocol version, or another number that has a meaning.
            let number = match u.int_in_range(0..=3u8)? {
                0 => u.arbitrary::<u64>()?,
                1 => u64::from(
                    *u.choose(&[0x0300u16, 0x0301, 0x0302, 0x0303, 0x0304, 0xFEFF, 0xFEFD, 0x0100])?,
                ),
                _ => u64::from(u.arbitrary::<u8>()? % 70),
            };
            let mut bytes = [number.to_le_bytes(), [0; 8]].concat();
            bytes.resize(len, 0);
            Some(bytes.into_boxed_slice())
        } else {
            Some(stretched(u, len)?)
        };
        Ok(Given { name, data_type, data, size })
    }

    fn param(&self) -> Param {
        let data = self.data.as_ref().map_or(null_mut(), |data| data.as_ptr().cast_mut().cast::<c_void>());
        Param::new(self.name, self.data_type, data, self.size)
    }

    fn makes_bits(&self) -> bool {
        self.name == c"use-bits"
    }
}

fn set(u: &mut Unstructured<'_>, state: &mut State<'_>) -> Result<std::result::Result<(), Refused>> {
    let mut all = vec![Given::any(u, false)?];
    if u.ratio(1u8, 4u8)? {
        all.push(Given::any(u, false)?);
    }
    let mut params: Vec<Param> = all.iter().map(Given::param).collect();
    params.push(Param::END);
    state.bits |= all.iter().any(Given::makes_bits);
    // SAFETY: the array ends with `Param::END`, and `all` owns the data of its entries.
    Ok(unsafe { state.context.set(&params) })
}

fn get(u: &mut Unstructured<'_>, state: &mut State<'_>) -> Result<std::result::Result<(), Refused>> {
    let mut all = vec![Given::any(u, true)?];
    if u.ratio(1u8, 4u8)? {
        all.push(Given::any(u, true)?);
    }
    let mut params: Vec<Param> = all
        .iter_mut()
        .map(|asked| {
            let data = asked.data.as_mut().map_or(null_mut(), |data| data.as_mut_ptr().cast::<c_void>());
            Param::new(asked.name, asked.data_type, data, asked.size)
        })
        .collect();
    params.push(Param::END);
    // SAFETY: the array ends with `Param::END`. `all` owns the data of its entries, which have room for each value.
    let outcome = unsafe {
        if u.ratio(1u8, 8u8)? {
            // Requests parameters of the cipher instead of parameters of the context. This function reports no reason of an error.
            state.context.cipher().get_params(&mut params);
            return Ok(Ok(()));
        }
        state.context.get(&mut params)
    };
    if outcome.is_ok() {
        for param in &params[..all.len()] {
            let answered = param.return_size;
            if answered == UNMODIFIED {
                continue;
            }
            match param.data_type {
                OCTET_PTR | UTF8_PTR => {
                    if !param.data.is_null() && answered > 0 {
                        // SAFETY: the data of such a parameter are a pointer to this number of bytes of the context.
                        let bytes = unsafe {
                            let bytes = param.data.cast::<*const u8>().read_unaligned();
                            std::slice::from_raw_parts(bytes, answered)
                        };
                        // All bytes are read, so that AddressSanitizer checks the pointer and the length.
                        std::hint::black_box(bytes.iter().fold(0, |sum: u8, byte| sum.wrapping_add(*byte)));
                    }
                }
                _ if param.data.is_null() || param.data_size == 0 => assert!(answered <= MAX_IV),
                _ => assert!(answered <= param.data_size),
            }
        }
    }
    Ok(outcome)
}

/// A TLS record, as libssl processes it.
fn record(u: &mut Unstructured<'_>, state: &mut State<'_>) -> Result<std::result::Result<(), Refused>> {
    let len = length(u)?.min(2000);
    let record = stretched(u, len)?;
    match state.context.cipher().mode() {
        "GCM" | "CCM" => {
            let mut fixed = stretched(u, 4)?;
            if u.arbitrary()?
                && let Err(reason) = state.context.set_octets(c"tlsivfixed", &mut fixed)
            {
                return Ok(Err(reason));
            }
            let mut aad = stretched(u, 13)?;
            let told = if u.ratio(7u8, 8u8)? { len.saturating_sub(*u.choose(&[0, 16])?) } else { length(u)? };
            aad[11..].copy_from_slice(&(told as u16).to_be_bytes());
            if let Err(reason) = state.context.set_octets(c"tlsaad", &mut aad) {
                return Ok(Err(reason));
            }
        }
        "CBC" | "ECB" => {
            let mut version =
                u32::from(*u.choose(&[0x0301u16, 0x0302, 0x0303, 0x0300, 0xFEFF, 0])?).to_ne_bytes();
            let mut size = usize::to_ne_bytes(*u.choose(&[20, 32, 48, 0, 64, 65, usize::MAX])?);
            let params = [
                Param::new(c"tls-version", 2, version.as_mut_ptr().cast(), 4),
                Param::new(c"tls-mac-size", 2, size.as_mut_ptr().cast(), 8),
                Param::END,
            ];
            // SAFETY: the array ends with `Param::END`, and its data are in local variables.
            if let Err(reason) = unsafe { state.context.set(&params) } {
                return Ok(Err(reason));
            }
        }
        _ => {}
    }
    let place = Place::Same { input: 0, output: 0 };
    let room = len + u.int_in_range(0..=300usize)?;
    let call =
        Call { once: u.arbitrary()?, len, passed_room: room, room, input: record, null_input: false, place };
    Ok(call.run(state).map(drop))
}

/// Makes the same calls on a context and on a copy of this context, and compares the results.
fn both(
    u: &mut Unstructured<'_>,
    states: &mut [State<'_>],
    at: usize,
) -> Result<std::result::Result<(), Refused>> {
    let state = &mut states[at];
    let same = state.context.cipher().mode() != "GCM" || state.has_iv;
    let context = state.context.duplicate().expect("memory is not short");
    let (bits, has_iv) = (state.bits, state.has_iv);
    let mut copy = State { context, bits, has_iv };
    let mut last = Ok(());
    for _ in 0..u.int_in_range(1..=3u8)? {
        let call = Call::any(u, state)?;
        let (ours, theirs) = (call.run(state), call.run(&mut copy));
        assert!(!same || ours == theirs, "the copy went another way");
        last = ours.map(drop);
    }
    Ok(last)
}

/// Encrypts a message in pieces with one instance, and in other pieces with another instance. Compares the results,
/// and decrypts them.
fn round_trip(u: &mut Unstructured<'_>) -> Result<()> {
    let (first, cipher) = choose(u)?;
    let second: &Provider<'static> = u.choose(&PROVIDERS)?;
    let index = (0..29).find(|&i| second.cipher(i).expect("there are 29").name() == cipher.name());
    let other = second.cipher(index.expect("the same ciphers")).expect("there are 29");
    let mode = cipher.mode();
    let key = stretched(u, cipher.key_len())?;
    let iv_len = match mode {
        "GCM" => u.int_in_range(1..=MAX_IV)?,
        "CCM" => u.int_in_range(7..=13usize)?,
        _ => cipher.iv_len(),
    };
    let iv = stretched(u, iv_len)?;
    let aad_len = if matches!(mode, "GCM" | "CCM") { u.int_in_range(0..=70usize)? } else { 0 };
    let aad = stretched(u, aad_len)?;
    let (mut cuts, mut more_cuts) = (Vec::new(), Vec::new());
    if !matches!(mode, "XTS" | "CCM") {
        for cuts in [&mut cuts, &mut more_cuts] {
            for _ in 0..u.int_in_range(0..=8u8)? {
                cuts.push(length(u)?);
            }
        }
    }
    let mut len = length(u)?;
    match mode {
        // With a nonce of 13 bytes, CCM encodes the length in two bytes.
        "CCM" if iv_len == 13 => len = len.min(65535),
        "XTS" => len = len.max(16),
        "CFB1" | "CFB8" => len %= 1000,
        _ => {}
    }
    let plain = stretched(u, len)?;
    let message = Message { key: &key, iv: &iv, aad: &aad };
    let (sealed, mut tag) =
        message.run(first, cipher, true, &plain, &cuts, None, u)?.expect("it can be encrypted");
    let again = message.run(second, other, true, &plain, &more_cuts, None, u)?.expect("it can be encrypted");
    assert!((&sealed, tag) == (&again.0, again.1), "{mode}: two ways of encryption differ");
    let (opened, _) =
        message.run(second, other, false, &sealed, &cuts, Some(&mut tag), u)?.expect("it can be decrypted");
    assert!(*opened == *plain, "{mode}: decryption gives other data");
    if matches!(mode, "GCM" | "CCM") {
        let at = u.choose_index(16)?;
        tag[at] ^= 1 << u.int_in_range(0..=7u8)?;
        let refused = message.run(first, cipher, false, &sealed, &cuts, Some(&mut tag), u)?;
        // As in OpenSSL's default provider, the reason code of a wrong tag depends on the mode: the final call of GCM gives none, and the
        // update of CCM gives one of OpenSSL's codes.
        let Refused(reason) = refused.expect_err("the tag is wrong");
        assert_eq!(reason, if mode == "GCM" { 0 } else { 57 << 23 | 102 });
    }
    Ok(())
}

struct Message<'a> {
    key: &'a [u8],
    iv: &'a [u8],
    aad: &'a [u8],
}

type Outcome = std::result::Result<(Vec<u8>, [u8; 16]), Refused>;

impl Message<'_> {
    /// Processes the whole message in pieces, sometimes continuing with a copy; returns the output and the tag, if any.
    #[allow(clippy::too_many_arguments)]
    fn run(
        &self,
        provider: &'static Provider<'static>,
        cipher: Cipher,
        encrypts: bool,
        data: &[u8],
        cuts: &[usize],
        tag: Option<&mut [u8; 16]>,
        u: &mut Unstructured<'_>,
    ) -> Result<Outcome> {
        let copies: u16 = u.arbitrary()?;
        Ok(self.pieces(provider, cipher, encrypts, data, cuts, tag, copies))
    }

    #[allow(clippy::too_many_arguments)]
    fn pieces(
        &self,
        provider: &'static Provider<'static>,
        cipher: Cipher,
        encrypts: bool,
        mut data: &[u8],
        cuts: &[usize],
        tag: Option<&mut [u8; 16]>,
        copies: u16,
    ) -> Outcome {
        let is_ccm = cipher.mode() == "CCM";
        let mut context = provider.context(cipher)?;
        context.init(encrypts, None, None)?;
        if is_ccm {
            let mut len = self.iv.len().to_ne_bytes();
            let params = [Param::new(c"ivlen", 2, len.as_mut_ptr().cast(), len.len()), Param::END];
            // SAFETY: the array ends with `Param::END`, and its data are in a local variable.
            unsafe { context.set(&params) }?;
        }
        if is_ccm && encrypts {
            // Sets only the length of the tag.
            let params = [Param::new(c"tag", OCTET_STRING, null_mut(), 16), Param::END];
            // SAFETY: the array ends with `Param::END`, and the data pointer of its entry is null.
            unsafe { context.set(&params) }?;
        }
        let is_aead = is_ccm || cipher.mode() == "GCM";
        if let Some(tag) = tag
            && is_aead
        {
            context.set_octets(c"tag", tag)?;
        }
        context.init(encrypts, Some(self.key), Some(self.iv))?;
        if is_ccm {
            // SAFETY: both pointers are null, so the call accesses no data.
            unsafe { context.update_raw(null_mut(), 0, null(), data.len()) }?;
        }
        if is_aead {
            // SAFETY: the input is a slice, and the output pointer is null.
            unsafe { context.update_raw(null_mut(), 0, self.aad.as_ptr(), self.aad.len()) }?;
        }
        let mut output = Vec::new();
        let mut step = 0;
        let mut piece = |context: &mut Context<'_>, input: &[u8], output: &mut Vec<u8>| {
            if copies >> (step % 16) & 1 == 1 {
                let copy = context.duplicate()?;
                *context = copy;
            }
            step += 1;
            let mut place = vec![0; input.len() + 16];
            let written = context.update(&mut place, input)?;
            output.extend(&place[..written]);
            Ok::<(), Refused>(())
        };
        for &cut in cuts {
            let (now, later) = data.split_at(cut.min(data.len()));
            data = later;
            piece(&mut context, now, &mut output)?;
        }
        // A CCM message or an XTS data unit is passed at once even if it is empty.
        piece(&mut context, data, &mut output)?;
        let mut last = [0; 16];
        let written = context.finish(&mut last)?;
        output.extend(&last[..written]);
        let mut tag = [0; 16];
        if is_aead && encrypts {
            context.get_octets(c"tag", &mut tag)?;
        }
        Ok((output, tag))
    }
}
