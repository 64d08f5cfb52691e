//! The methods of the kernels, in groups. Each macro expands to methods of `impl Kernel` or of a token type, in the module of a
//! kernel. The module defines the vectors `V` and `Chains`, the hash key `Hash`, and the constants that the macros use.

/// Defines safe methods on a token type. Each method calls a function with the target features that the token proves.
macro_rules! entries {
    ($features:literal,
        $($vis:vis fn $entry:ident($($arg:ident: $type:ty),*) -> $result:ty { $($body:tt)* })*
    ) => {
        $(#[inline]
        $vis fn $entry(self, $($arg: $type),*) -> $result {
            #[target_feature(enable = $features)]
            fn entry($($arg: $type),*) -> $result {
                // SAFETY: this function has the target features of its vectors.
                unsafe { $($body)* }
            }
            // SAFETY: the token exists, so the processor has the features.
            unsafe { entry($($arg),*) }
        })*
    };
}

/// Defines the entry functions of the parallel passes, for data of at least `SHORT` bytes.
macro_rules! long_passes {
    ($features:literal) => {
        entries! { $features,
            fn ecb_encrypt_long(key: &Schedule, data: Span<'_>) -> () { ecb::ecb::<Encrypt, V>(key, data) }
            fn ecb_decrypt_long(key: &Schedule, data: Span<'_>) -> () { ecb::ecb::<Decrypt, V>(key, data) }
            fn ctr_long(key: &Schedule, counter: &mut Block, data: Span<'_>) -> () {
                ctr::ctr::<V, 128>(key, counter, data)
            }
            fn ctr32_long(key: &Schedule, counter: &mut Block, data: Span<'_>) -> () {
                ctr::ctr::<V, 32>(key, counter, data)
            }
            fn cbc_decrypt_long(key: &Schedule, iv: &mut Block, data: Span<'_>) -> () {
                feedback::cbc_decrypt::<V>(key, iv, data)
            }
            fn cfb128_decrypt_long(key: &Schedule, iv: &mut Block, data: Span<'_>) -> () {
                feedback::cfb128_decrypt::<V>(key, iv, data)
            }
            fn xts_encrypt_long(key: &Schedule, tweak: &mut Block, data: Span<'_>) -> () {
                xts::xts::<Encrypt, V>(key, tweak, data)
            }
            fn xts_decrypt_long(key: &Schedule, tweak: &mut Block, data: Span<'_>) -> () {
                xts::xts::<Decrypt, V>(key, tweak, data)
            }
        }
    };
}

/// Defines methods that call the base for less than `SHORT` bytes of data, and an entry function for more.
macro_rules! by_length {
    ($($method:ident, $long:ident $(, $register:ident: $type:ty)?;)*) => {
        $(#[inline]
        fn $method(self, key: &Schedule, $($register: $type,)? data: Span<'_>) {
            if data.len() < SHORT {
                self.base.$method(key, $($register,)? data);
            } else {
                self.$long(key, $($register,)? data);
            }
        })*
    };
}

/// Defines methods that call the base.
macro_rules! by_base {
    ($($method:ident => $base:ident($($arg:ident: $type:ty),*);)*) => {
        $(#[inline]
        fn $method(self, $($arg: $type),*) {
            self.base.$base($($arg),*);
        })*
    };
}

/// The parallel passes of [`Kernel`](crate::kernel::Kernel).
macro_rules! passes {
    ($features:literal) => {
        by_length! {
            ecb_encrypt, ecb_encrypt_long;
            ecb_decrypt, ecb_decrypt_long;
            cbc_decrypt, cbc_decrypt_long, iv: &mut Block;
            cfb128_decrypt, cfb128_decrypt_long, iv: &mut Block;
            xts_encrypt, xts_encrypt_long, tweak: &mut Block;
            xts_decrypt, xts_decrypt_long, tweak: &mut Block;
        }

        #[inline]
        fn ctr(self, key: &Schedule, counter: &mut Block, data: Span<'_>) {
            if ctr::is_short::<V, 128>(counter, data.len()) {
                self.base.ctr(key, counter, data);
            } else {
                self.ctr_long(key, counter, data);
            }
        }

        #[inline]
        fn ctr32(self, key: &Schedule, counter: &mut Block, data: Span<'_>) {
            if ctr::is_short::<V, 32>(counter, data.len()) {
                self.base.ctr(key, counter, data);
            } else {
                self.ctr32_long(key, counter, data);
            }
        }

        #[inline]
        fn xts_unit(
            self,
            key: &Schedule,
            tweak_key: &Schedule,
            encrypts: bool,
            number: &Block,
            after: Option<&mut Block>,
            data: Span<'_>,
        ) {
            if data.len() >= SHORT {
                xts_unit_by_passes(self, key, tweak_key, encrypts, number, after, data);
            } else if encrypts {
                self.base.xts_unit_encrypt(key, tweak_key, number, after, data);
            } else {
                self.base.xts_unit_decrypt(key, tweak_key, number, after, data);
            }
        }

        entries! { $features,
            fn ctr_little32(key: &Schedule, counter: &mut Block, data: Span<'_>) -> () {
                ctr::ctr_little32::<V>(key, counter, data)
            }
            fn ghash(key: &Hash, state: &mut Block, data: &[u8]) -> () {
                ghash::hash::<V, true>(key, state, data)
            }
            fn polyval(key: &Hash, state: &mut Block, data: &[u8]) -> () {
                ghash::hash::<V, false>(key, state, data)
            }
            fn ocb(key: &Schedule, masks: &OcbKey, state: &mut OcbState, encrypts: bool, data: Span<'_>) -> () {
                if encrypts {
                    ocb::ocb::<V, Encrypt>(key, masks, state, data)
                } else {
                    ocb::ocb::<V, Decrypt>(key, masks, state, data)
                }
            }
        }
    };
}

/// The set-up of keys.
macro_rules! keys {
    ($features:literal) => {
        // SAFETY: zeros are a schedule and a hash key without round keys and without powers. The token of the kernel has no data.
        // The functions write keys to their place.
        const IN_PLACE: Option<InPlace<Self>> = Some(unsafe { InPlace::new() });

        #[inline]
        fn expand(self, key: &[u8]) -> Schedule {
            self.base.expand(key)
        }

        fn expand_into(self, key: &[u8], place: &mut Schedule) -> bool {
            self.base.expand_into(key, place);
            true
        }

        fn expand_each(self, keys: &[&[u8]], places: &mut [Schedule]) {
            self.base.expand_each(keys, places);
        }

        fn duplicate(self, key: &Schedule) -> Option<Schedule> {
            Some(key.duplicate())
        }

        fn copy_schedule(self, schedule: &Schedule, place: &mut Schedule) {
            place.copy_from(schedule);
        }

        fn blank(self) -> (Schedule, Hash) {
            (Schedule::blank(), self.blank_hash_key())
        }

        entries! { $features,
            fn hash_key(h: &Block) -> Hash { ghash::hash_key::<V>(h) }
            fn hash_key_into(h: &Block, place: &mut Hash) -> bool {
                ghash::hash_key_into::<V>(h, place);
                true
            }
            fn hash_keys_into(h: &[Block], places: &mut [Hash]) -> () {
                for (h, place) in h.iter().zip(places) {
                    ghash::hash_key_into::<V>(h, place);
                }
            }
            fn ensure_powers(key: &mut Hash, blocks: usize) -> () { ghash::ensure_powers::<V>(key, blocks) }
            fn gcm_key_into(key: &[u8], schedule: &mut Schedule, hash_key: &mut Hash) -> bool {
                short_gcm::key_into::<V>(key, schedule, hash_key);
                true
            }
        }
    };
}

/// The entry functions of the fused loops, and of hash keys without a key.
macro_rules! fused_loops {
    ($features:literal) => {
        entries! { $features,
            fn blank_hash_key() -> Hash { ghash::blank::<V>() }
            fn gcm_encrypt(
                key: &Schedule,
                hash_key: &Hash,
                counter: &mut GcmCounter,
                state: &mut Block,
                data: Span<'_>
            ) -> () {
                let text = data.src();
                if gcm::is_aligned::<V, VECTORS>(counter) {
                    gcm::crypt::<V, VECTORS, true, true, true>(key, hash_key, &mut counter.block, state, data, text)
                } else {
                    gcm::crypt::<V, VECTORS, true, false, true>(key, hash_key, &mut counter.block, state, data, text)
                }
            }
            fn gcm_decrypt(
                key: &Schedule,
                hash_key: &Hash,
                counter: &mut GcmCounter,
                state: &mut Block,
                data: Span<'_>
            ) -> () {
                let text = data.src();
                if gcm::is_aligned::<V, VECTORS>(counter) {
                    gcm::crypt::<V, VECTORS, false, true, true>(key, hash_key, &mut counter.block, state, data, text)
                } else {
                    gcm::crypt::<V, VECTORS, false, false, true>(key, hash_key, &mut counter.block, state, data, text)
                }
            }
        }
    };
}

/// GCM and GCM-SIV: CTR and a hash in one loop.
macro_rules! gcm_methods {
    ($features:literal) => {
        const GCM_STEP: usize = VECTORS * <V as vector::Vector>::BYTES;
        const GCM_FROM: usize = FROM;
        const HAS_SHORT_GCM: bool = true;
        const GCM_SIV_STEP: usize = Self::GCM_STEP;

        fn gcm(
            self,
            key: &Schedule,
            hash_key: &Hash,
            encrypts: bool,
            counter: &mut GcmCounter,
            state: &mut Block,
            data: Span<'_>,
        ) {
            if encrypts {
                self.gcm_encrypt(key, hash_key, counter, state, data);
            } else {
                self.gcm_decrypt(key, hash_key, counter, state, data);
            }
        }

        entries! { $features,
            fn gcm_short(
                key: &Schedule,
                powers: Powers<'_, Hash>,
                progress: Progress<'_>,
                encrypts: bool,
                data: Span<'_>
            ) -> () {
                short_gcm::crypt::<V>(key, powers, progress, encrypts, data)
            }
            fn gcm_tag(
                powers: Powers<'_, Hash>,
                state: &Block,
                before: &[u8],
                lengths: [u64; 2],
                mask: &Block
            ) -> Block {
                short_gcm::tag::<V>(powers, state, before, lengths, mask)
            }
            fn gcm_siv_open(
                key: &Schedule,
                hash_key: &Hash,
                counter: &mut Block,
                state: &mut Block,
                data: Span<'_>
            ) -> () {
                let text = data.src();
                gcm::crypt::<V, VECTORS, true, false, false>(key, hash_key, counter, state, data, text)
            }
            fn gcm_siv_seal(
                key: &Schedule,
                counter: &mut Block,
                data: Span<'_>,
                hash_key: &Hash,
                state: &mut Block,
                text: &[u8]
            ) -> () {
                assert_eq!(text.len(), data.len(), "as many steps");
                let text = text.as_ptr();
                gcm::crypt::<V, VECTORS, false, false, false>(key, hash_key, counter, state, data, text)
            }
        }
    };
}

/// Steps of several messages, and the serial modes of one message.
macro_rules! serial_modes {
    ($features:literal) => {
        entries! { $features,
            fn cbc_encrypt(lanes: &mut [Lane<'_, Schedule>]) -> () {
                chains::cbc_encrypt::<Chains, PLACES>(lanes)
            }
        }

        by_base! {
            encrypt_each => encrypt_each(keys: &[&Schedule], blocks: &mut [Block]);
            decrypt_each => decrypt_each(keys: &[&Schedule], blocks: &mut [Block]);
            encrypt_block => encrypt_block(key: &Schedule, block: &mut Block);
            cbc_encrypt_single => cbc_encrypt(key: &Schedule, iv: &mut Block, data: Span<'_>);
            cfb128_encrypt => cfb128_encrypt(key: &Schedule, iv: &mut Block, data: Span<'_>);
            cfb8_encrypt => cfb8_encrypt(key: &Schedule, iv: &mut Block, data: Span<'_>);
            cfb8_decrypt => cfb8_decrypt(key: &Schedule, iv: &mut Block, data: Span<'_>);
            cfb1_encrypt => cfb1_encrypt(key: &Schedule, register: &mut Block, data: Span<'_>, bits: usize);
            cfb1_decrypt => cfb1_decrypt(key: &Schedule, register: &mut Block, data: Span<'_>, bits: usize);
            ofb => ofb(key: &Schedule, iv: &mut Block, data: Span<'_>);
            cbc_mac => cbc_mac(key: &Schedule, state: &mut Block, data: &[u8]);
        }
    };
}
