//! CBC. The traits [`cipher::BlockModeEncrypt`] and [`cipher::BlockModeDecrypt`] have the methods, also those that add or remove
//! padding.
//!
//! A program that reveals whether the padding of a message is valid decrypts it for an attacker: authenticate the ciphertext.

use cipher::array::Array;
use cipher::common::InnerUser;
use cipher::consts::{U16, U64};
use cipher::inout::{InOut, InOutBuf};
use cipher::zeroize::{Zeroize, ZeroizeOnDrop};
use cipher::{
    Block, BlockModeDecBackend, BlockModeDecClosure, BlockModeDecrypt, BlockModeEncBackend,
    BlockModeEncClosure, BlockModeEncrypt, BlockSizeUser, InnerIvInit, Iv, IvSizeUser, IvState, ParBlocks,
    ParBlocksSizeUser, SetIvState,
};
use lockstep_cpu::inline::{InlineKey, Span};

use super::block::Aes;

/// CBC encryption, as `cbc::Encryptor`.
pub type Encryptor<A> = Cbc<A, true>;
/// CBC decryption, as `cbc::Decryptor`.
pub type Decryptor<A> = Cbc<A, false>;

/// CBC in one direction.
#[derive(Clone)]
pub struct Cbc<A, const ENCRYPTS: bool> {
    cipher: A,
    /// The IV, or the last block of ciphertext.
    previous: [u8; 16],
}

impl<KeySize, const ENCRYPTS: bool> Cbc<Aes<KeySize>, ENCRYPTS> {
    fn run(&mut self, blocks: &mut [Array<u8, U16>]) {
        let cbc = if ENCRYPTS { InlineKey::cbc_encrypt } else { InlineKey::cbc_decrypt };
        cbc(self.cipher.key(), &mut self.previous, Span::in_place(Array::slice_as_flattened_mut(blocks)));
    }
}

impl<A, const ENCRYPTS: bool> BlockSizeUser for Cbc<A, ENCRYPTS> {
    type BlockSize = U16;
}

impl<A, const ENCRYPTS: bool> ParBlocksSizeUser for Cbc<A, ENCRYPTS> {
    type ParBlocksSize = U64;
}

impl<KeySize> BlockModeEncrypt for Encryptor<Aes<KeySize>> {
    fn encrypt_with_backend(&mut self, closure: impl BlockModeEncClosure<BlockSize = U16>) {
        closure.call(self);
    }
}

impl<KeySize> BlockModeEncBackend for Encryptor<Aes<KeySize>> {
    fn encrypt_block(&mut self, block: InOut<'_, '_, Block<Self>>) {
        self.run(std::slice::from_mut(block.into_out_with_copied_in()));
    }

    fn encrypt_par_blocks(&mut self, blocks: InOut<'_, '_, ParBlocks<Self>>) {
        self.run(blocks.into_out_with_copied_in());
    }

    fn encrypt_tail_blocks(&mut self, blocks: InOutBuf<'_, '_, Block<Self>>) {
        self.run(blocks.into_out_with_copied_in());
    }
}

impl<KeySize> BlockModeDecrypt for Decryptor<Aes<KeySize>> {
    fn decrypt_with_backend(&mut self, closure: impl BlockModeDecClosure<BlockSize = U16>) {
        closure.call(self);
    }
}

impl<KeySize> BlockModeDecBackend for Decryptor<Aes<KeySize>> {
    fn decrypt_block(&mut self, block: InOut<'_, '_, Block<Self>>) {
        self.run(std::slice::from_mut(block.into_out_with_copied_in()));
    }

    fn decrypt_par_blocks(&mut self, blocks: InOut<'_, '_, ParBlocks<Self>>) {
        self.run(blocks.into_out_with_copied_in());
    }

    fn decrypt_tail_blocks(&mut self, blocks: InOutBuf<'_, '_, Block<Self>>) {
        self.run(blocks.into_out_with_copied_in());
    }
}

impl<A, const ENCRYPTS: bool> InnerUser for Cbc<A, ENCRYPTS> {
    type Inner = A;
}

impl<A, const ENCRYPTS: bool> IvSizeUser for Cbc<A, ENCRYPTS> {
    type IvSize = U16;
}

impl<A, const ENCRYPTS: bool> InnerIvInit for Cbc<A, ENCRYPTS> {
    fn inner_iv_init(cipher: A, iv: &Iv<Self>) -> Self {
        Cbc { cipher, previous: iv.0 }
    }
}

impl<A, const ENCRYPTS: bool> IvState for Cbc<A, ENCRYPTS> {
    fn iv_state(&self) -> Iv<Self> {
        Array(self.previous)
    }
}

impl<A, const ENCRYPTS: bool> SetIvState for Cbc<A, ENCRYPTS> {
    fn set_iv(&mut self, iv: &Iv<Self>) {
        self.previous = iv.0;
    }
}

impl<A, const ENCRYPTS: bool> Drop for Cbc<A, ENCRYPTS> {
    fn drop(&mut self) {
        self.previous.zeroize();
    }
}

impl<A: ZeroizeOnDrop, const ENCRYPTS: bool> ZeroizeOnDrop for Cbc<A, ENCRYPTS> {}

crate::impl_debug!([A, const ENCRYPTS: bool] Cbc<A, ENCRYPTS>, "Cbc");
