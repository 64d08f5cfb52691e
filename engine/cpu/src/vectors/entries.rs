//! The methods of the kernels, in groups. Each macro expands to methods of a kernel, in the module of the kernel. The module
//! defines the vectors `V` and `Chains`, the hash key `Hash`, and the constants that the macros use.

/// Defines safe methods of a kernel. Each method calls a function with the target features that the token proves. After the call, an
/// expression may wipe the secrets that the compiler has copied to the stack. If the condition after `unless` holds, nothing is called.
macro_rules! entries {
    ($features:literal,
        $(fn $entry:ident($($arg:ident: $type:ty),*) $(unless $is_done:expr =>)? { $($body:tt)* } $(then $wipe:expr;)?)*
    ) => {
        $(#[inline]
        fn $entry(self, $($arg: $type),*) {
            $(if $is_done { return; })?
            #[target_feature(enable = $features)]
            fn entry($($arg: $type),*) {
                // SAFETY: this function has the target features of its vectors.
                unsafe { $($body)* }
            }
            // SAFETY: the token exists, so the processor has the features.
            unsafe { entry($($arg),*) }
            $($wipe)?
        })*
    };
}

/// Like [`entries`], with one function for short data, which uses vectors of one block, and one for other data. `W` is the vector, and
/// FEW is set for short data. An expression states whether the data are short. The stack is wiped only after the function for other data.
macro_rules! entries_by_length {
    ($features:literal,
        $(fn $entry:ident($($arg:ident: $type:ty),*) if $is_short:expr => { $($body:tt)* } $(then $wipe:expr;)?)*
    ) => {
        $(#[inline]
        fn $entry(self, $($arg: $type),*) {
            #[target_feature(enable = $features)]
            fn short($($arg: $type),*) {
                type W = Single;
                const FEW: bool = true;
                // SAFETY: this function has the target features of its vectors; the data are short.
                unsafe { $($body)* }
            }
            #[target_feature(enable = $features)]
            fn long($($arg: $type),*) {
                type W = V;
                const FEW: bool = false;
                // SAFETY: this function has the target features of its vectors.
                unsafe { $($body)* }
            }
            if $is_short {
                // SAFETY: the token exists, so the processor has the features.
                return unsafe { short($($arg),*) };
            }
            // SAFETY: as above.
            unsafe { long($($arg),*) }
            $($wipe)?
        })*
    };
}

/// Entry functions for the serial modes of one message. A method selects one of them.
macro_rules! variants {
    ($features:literal) => {
        entries! { $features,
            fn cbc_encrypt_single(key: &Schedule, iv: &mut Block, data: Span<'_>) {
                single_stream::cbc::<false>(key, iv, data.src(), data.dst(), data.len() / 16)
            }
            fn cfb128_encrypt(key: &Schedule, iv: &mut Block, data: Span<'_>) {
                single_stream::feedback::<true>(key, iv, data)
            }
            fn ofb(key: &Schedule, iv: &mut Block, data: Span<'_>) {
                single_stream::feedback::<false>(key, iv, data)
            }
            fn cfb8(key: &Schedule, encrypts: bool, iv: &mut Block, data: Span<'_>) {
                directed!(encrypts, E => single_stream::cfb8::<E>(key, iv, data))
            }
            fn cfb1(key: &Schedule, encrypts: bool, register: &mut Block, bits: usize, data: Span<'_>) {
                directed!(encrypts, E => single_stream::cfb1::<E>(key, register, data, bits))
            }
        }
    };
}

/// Functions that set up, copy and complete keys.
macro_rules! keys {
    ($features:literal) => {
        const IN_PLACE: bool = cfg!(target_arch = "x86_64");

        fn blank_schedule(self) -> Option<Schedule> {
            Some(Schedule::blank())
        }

        fn blank_hash_key(self) -> Option<Hash> {
            Some(Hash::blank())
        }

        fn copy_schedule(self, schedule: &Schedule, place: &mut Schedule) {
            place.copy_from(schedule);
        }

        entries! { $features,
            fn expand_into(key: &[u8], place: &mut Schedule) { schedule::expand_into(key, place) } then wipe_stack::<64>();
            fn expand_to_encrypt_into(key: &[u8], place: &mut Schedule) {
                schedule::expand_to_encrypt_into(key, place)
            } then wipe_stack::<64>();
            fn expand_each(keys: &[&[u8]], places: &mut [Schedule]) { schedule::expand_each(keys, places) }
            fn hash_keys_into(h: &[Block], places: &mut [Hash]) {
                for (h, place) in h.iter().zip(places) {
                    ghash::replace_key::<V, true>(single_stream::load_words(h), place);
                }
            }
            fn ensure_powers(key: &mut Hash, blocks: usize) unless key.has_powers(blocks) => {
                ghash::ensure_powers::<V>(key, blocks)
            }
            fn gcm_key_into(key: &[u8], schedule: &mut Schedule, hash_key: &mut Hash) {
                short_gcm::key_into::<V>(key, schedule, hash_key)
            }
        }
    };
}

/// The passes, and the parts of authenticated modes.
macro_rules! passes {
    ($features:literal) => {
        entries_by_length! { $features,
            fn ecb(key: &Schedule, encrypts: bool, data: Span<'_>) if data.len() < SHORT => {
                directed!(encrypts, E => ecb::ecb::<E, W, FEW>(key, data))
            }
            fn ctr(key: &Schedule, counter: &mut Block, data: Span<'_>) if ctr::is_short::<V, 128>(counter, data.len()) => {
                ctr::ctr::<W, 128, FEW>(key, counter, data)
            }
            fn ctr32(key: &Schedule, counter: &mut Block, data: Span<'_>) if ctr::is_short::<V, 32>(counter, data.len()) => {
                ctr::ctr::<W, 32, FEW>(key, counter, data)
            }
            fn cbc_decrypt(key: &Schedule, iv: &mut Block, data: Span<'_>) if data.len() < SHORT => {
                feedback::decrypt::<false, W, FEW>(key, iv, data)
            }
            fn cfb128_decrypt(key: &Schedule, iv: &mut Block, data: Span<'_>) if data.len() < SHORT => {
                feedback::decrypt::<true, W, FEW>(key, iv, data)
            }
            fn xts(key: &Schedule, encrypts: bool, tweak: &mut Block, data: Span<'_>) if data.len() < SHORT => {
                directed!(encrypts, E => xts::xts::<E, W, FEW>(key, tweak, data))
            }
            // Vectors of one block: `cpu/aesni` has 16 registers, and spills tweaks, masks and blocks. The analysis (docs/proof.md) finds
            // none of them deeper than 272 bytes below the caller of XTS, and 192 bytes below that of OCB3. On 64-bit Arm, `wipe_stack` does
            // nothing.
            then if <V as Vector>::BLOCKS == 1 { wipe_stack::<320>() };
            fn xts_unit(
                key: &Schedule,
                tweak_key: &Schedule,
                encrypts: bool,
                number: &Block,
                after: Option<&mut Block>,
                data: Span<'_>
            ) if data.len() < SHORT => {
                directed!(encrypts, E => xts::unit::<E, W, FEW>(key, tweak_key, number, after, data))
            }
            then if <V as Vector>::BLOCKS == 1 { wipe_stack::<320>() };
            fn ocb(
                key: &Schedule,
                masks: &OcbKey,
                state: &mut OcbState,
                encrypts: bool,
                data: Span<'_>
            ) if data.len() < SHORT => {
                directed!(encrypts, E => ocb::ocb::<E, W, FEW>(key, masks, state, data))
            }
            then if <V as Vector>::BLOCKS == 1 { wipe_stack::<192>() };
        }

        entries! { $features,
            fn ctr_little32(key: &Schedule, counter: &mut Block, data: Span<'_>) {
                ctr::ctr_little32::<V>(key, counter, data)
            }
            fn ghash(key: &Hash, state: &mut Block, data: &[u8]) { ghash::hash::<V, true>(key, state, data, None) }
            fn polyval(key: &Hash, state: &mut Block, data: &[u8], last: Option<&Block>) {
                ghash::hash::<V, false>(key, state, data, last)
            }
            fn gcm_siv_keys(key: &Schedule, nonce: u128, hash_key: &mut Hash, derived: &mut [Block; 2]) {
                // The blocks stay in registers, because the time of a short message is mostly the latency of this chain. Six blocks take
                // about as much time as the four that a key of 16 bytes needs. Half of each block is used.
                let mut x = [Single::number(0); 6];
                for_each!(I < 6 => x[I] = single_stream::encrypted(key, Single::number(nonce << 32 | I as u128)));
                x[2].low_halves(x[3]).store(derived[0].as_mut_ptr());
                x[4].low_halves(x[5]).store(derived[1].as_mut_ptr());
                ghash::replace_key::<V, false>(x[0].low_halves(x[1]), hash_key);
            }
        }

        // GCM and GCM-SIV: CTR and a hash in one loop.

        const GCM_STEP: usize = VECTORS * <V as Vector>::BYTES;
        const GCM_FROM: usize = FROM;
        const GCM_FEW: usize = <V as Vector>::BYTES;
        const GCM_SIV_STEP: usize = Self::GCM_STEP;

        entries! { $features,
            fn gcm(
                key: &Schedule,
                hash_key: &Hash,
                encrypts: bool,
                counter: &mut GcmCounter,
                state: &mut Block,
                data: Span<'_>
            ) {
                let (text, is_aligned) = (data.src(), gcm::is_aligned::<V, VECTORS>(counter));
                let counter = &mut counter.block[0];
                directed!(encrypts, E => directed!(is_aligned, A => {
                    gcm::crypt::<V, VECTORS, E, A, true>(key, hash_key, counter, state, data, text)
                }))
            }
            fn gcm_few(
                key: &Schedule,
                mask: Option<&mut Block>,
                counter: &mut Block,
                encrypts: bool,
                data: Span<'_>,
                waiting: &mut [u8; LARGEST_VECTOR]
            ) {
                short_gcm::few::<V>(key, mask, counter, encrypts, data, waiting)
            }
            fn gcm_short(
                key: &Schedule,
                powers: &mut Powers<'_, Hash>,
                progress: Progress<'_>,
                encrypts: bool,
                data: Span<'_>
            ) {
                short_gcm::crypt::<V>(key, powers, progress, encrypts, data)
            }
            fn gcm_tag(
                hash_key: &Hash,
                state: &Block,
                before: &[u8],
                lengths: [u64; 2],
                tag: &mut Block
            ) {
                short_gcm::tag::<V>(hash_key, state, before, lengths, tag)
            }
            fn gcm_siv(
                key: &Schedule,
                counter: &mut Block,
                data: Span<'_>,
                hash_key: &Hash,
                state: &mut Block,
                text: Option<&[u8]>
            ) {
                let Some(text) = text else {
                    // If OUTPUT is set, `crypt` hashes the text that it writes, and reads no other text for the hash.
                    let unused = data.src();
                    return gcm::crypt::<V, VECTORS, true, false, false>(key, hash_key, counter, state, data, unused);
                };
                assert_eq!(text.len(), data.len(), "as many steps");
                let text = text.as_ptr();
                gcm::crypt::<V, VECTORS, false, false, false>(key, hash_key, counter, state, data, text)
            }

            fn ccm(key: &Schedule, encrypts: bool, mac: &mut Block, first: &Block, data: Span<'_>) {
                directed!(encrypts, E => single_stream::ccm::<E>(key, mac, first, data))
            }

            // Steps of several messages, and the serial modes of one message.

            fn cbc_encrypt(lanes: &mut [Lane<'_, Schedule>]) {
                chains::cbc_encrypt::<Chains, PLACES>(lanes)
            }
            fn each(keys: &[&Schedule], encrypts: bool, blocks: &mut [Block]) {
                directed!(encrypts, E => each::each::<E>(keys, blocks))
            }
            fn encrypt_block(key: &Schedule, block: &mut Block) { single_stream::encrypt_block(key, block) }
            fn cbc_mac(key: &Schedule, state: &mut Block, data: &[u8]) {
                single_stream::cbc::<true>(key, state, data.as_ptr(), std::ptr::null_mut(), data.len() / 16)
            }
        }

        #[inline]
        fn serial(self, key: &Schedule, pass: Pass, register: &mut Block, bits: u64, data: Span<'_>) {
            match pass {
                Pass::CbcEncrypt => self.cbc_encrypt_single(key, register, data),
                Pass::Cfb128Encrypt => self.cfb128_encrypt(key, register, data),
                Pass::Ofb => self.ofb(key, register, data),
                Pass::Cfb8Encrypt => self.cfb8(key, true, register, data),
                Pass::Cfb8Decrypt => self.cfb8(key, false, register, data),
                Pass::Cfb1Encrypt => self.cfb1(key, true, register, bits as usize, data),
                Pass::Cfb1Decrypt => self.cfb1(key, false, register, bits as usize, data),
                _ => serial::single(self, key, pass, register, bits, data.into_host()),
            }
        }
    };
}
