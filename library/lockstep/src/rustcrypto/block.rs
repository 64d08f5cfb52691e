//! The block cipher.

use std::marker::PhantomData;

use cipher::array::{Array, ArraySize};
use cipher::consts::{U16, U24, U32, U64};
use cipher::inout::{InOut, InOutBuf};
use cipher::zeroize::ZeroizeOnDrop;
use cipher::{
    Block, BlockCipherDecBackend, BlockCipherDecClosure, BlockCipherDecrypt, BlockCipherEncBackend,
    BlockCipherEncClosure, BlockCipherEncrypt, BlockSizeUser, KeyInit, KeySizeUser, ParBlocks,
    ParBlocksSizeUser,
};
use lockstep_core::stack;
use lockstep_cpu::inline::{InlineKernel, InlineKey, Span, is_proven};

/// AES with a 128-bit key.
pub type Aes128 = Aes<U16>;
/// AES with a 192-bit key.
pub type Aes192 = Aes<U24>;
/// AES with a 256-bit key.
pub type Aes256 = Aes<U32>;

/// AES. Clones share the round keys, which are wiped when the last clone is dropped.
pub struct Aes<KeySize> {
    key: InlineKey,
    size: PhantomData<fn() -> KeySize>,
}

impl<KeySize> Aes<KeySize> {
    pub(super) fn key(&self) -> &InlineKey {
        &self.key
    }

    /// Runs ECB on blocks in place, by [`InlineKey::ecb_encrypt`] or [`InlineKey::ecb_decrypt`].
    fn run(&self, ecb: fn(&InlineKey, Span<'_>), blocks: &mut [Array<u8, U16>]) {
        ecb(&self.key, Span::in_place(Array::slice_as_flattened_mut(blocks)));
    }
}

/// A separate function, so that its stack frame can be wiped.
#[inline(never)]
fn expanded(key: &[u8]) -> InlineKey {
    let kernel = InlineKernel::all().find(|kernel| is_proven(*kernel));
    let key = kernel.and_then(|kernel| InlineKey::new(kernel, key));
    key.expect("a kernel passes its self-test, and memory is not exhausted")
}

impl<KeySize: ArraySize> KeySizeUser for Aes<KeySize> {
    type KeySize = KeySize;
}

impl<KeySize: ArraySize> KeyInit for Aes<KeySize> {
    /// # Panics
    /// If no kernel passes its self-test on this processor, or if memory is exhausted.
    fn new(key: &cipher::Key<Self>) -> Self {
        const { assert!(matches!(KeySize::USIZE, 16 | 24 | 32), "AES has no keys of this length") }
        let key = expanded(key);
        stack::wipe_below();
        Aes { key, size: PhantomData }
    }
}

impl<KeySize> BlockSizeUser for Aes<KeySize> {
    type BlockSize = U16;
}

impl<KeySize> ParBlocksSizeUser for Aes<KeySize> {
    /// This number of blocks is enough for the longest loop of every kernel, so that the start and end of a call of the kernel take
    /// only a small part of the time.
    type ParBlocksSize = U64;
}

impl<KeySize> BlockCipherEncrypt for Aes<KeySize> {
    fn encrypt_with_backend(&self, closure: impl BlockCipherEncClosure<BlockSize = U16>) {
        closure.call(self);
    }
}

impl<KeySize> BlockCipherDecrypt for Aes<KeySize> {
    fn decrypt_with_backend(&self, closure: impl BlockCipherDecClosure<BlockSize = U16>) {
        closure.call(self);
    }
}

impl<KeySize> BlockCipherEncBackend for Aes<KeySize> {
    fn encrypt_block(&self, block: InOut<'_, '_, Block<Self>>) {
        self.key.encrypt_block(&mut block.into_out_with_copied_in().0);
    }

    fn encrypt_par_blocks(&self, blocks: InOut<'_, '_, ParBlocks<Self>>) {
        self.run(InlineKey::ecb_encrypt, blocks.into_out_with_copied_in());
    }

    fn encrypt_tail_blocks(&self, blocks: InOutBuf<'_, '_, Block<Self>>) {
        self.run(InlineKey::ecb_encrypt, blocks.into_out_with_copied_in());
    }
}

impl<KeySize> BlockCipherDecBackend for Aes<KeySize> {
    fn decrypt_block(&self, block: InOut<'_, '_, Block<Self>>) {
        self.run(InlineKey::ecb_decrypt, std::slice::from_mut(block.into_out_with_copied_in()));
    }

    fn decrypt_par_blocks(&self, blocks: InOut<'_, '_, ParBlocks<Self>>) {
        self.run(InlineKey::ecb_decrypt, blocks.into_out_with_copied_in());
    }

    fn decrypt_tail_blocks(&self, blocks: InOutBuf<'_, '_, Block<Self>>) {
        self.run(InlineKey::ecb_decrypt, blocks.into_out_with_copied_in());
    }
}

impl<KeySize> Clone for Aes<KeySize> {
    fn clone(&self) -> Self {
        Aes { key: self.key.clone(), size: PhantomData }
    }
}

impl<KeySize> ZeroizeOnDrop for Aes<KeySize> {}

crate::impl_debug!([KeySize] Aes<KeySize>, "Aes");
