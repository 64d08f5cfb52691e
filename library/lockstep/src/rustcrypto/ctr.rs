//! Counter mode. For counters in little-endian order, use the crate `ctr` with the block ciphers of this module.

use std::marker::PhantomData;

use cipher::array::Array;
use cipher::common::InnerUser;
use cipher::consts::{U1, U16};
use cipher::inout::InOutBuf;
use cipher::zeroize::{Zeroize, ZeroizeOnDrop};
use cipher::{
    Block, BlockSizeUser, InnerIvInit, Iv, IvSizeUser, IvState, ParBlocksSizeUser, SetIvState,
    StreamCipherBackend, StreamCipherClosure, StreamCipherCore, StreamCipherCoreWrapper, StreamCipherCounter,
    StreamCipherSeekCore,
};
use lockstep_cpu::inline::Span;

use super::block::Aes;

/// CTR that increments the whole block, as `ctr::Ctr128BE`.
pub type Ctr128BE<A> = StreamCipherCoreWrapper<CtrCore<A, u128>>;
/// CTR that increments the last 64 bits of the block, as `ctr::Ctr64BE`.
pub type Ctr64BE<A> = StreamCipherCoreWrapper<CtrCore<A, u64>>;
/// CTR that increments the last 32 bits of the block, as `ctr::Ctr32BE`.
pub type Ctr32BE<A> = StreamCipherCoreWrapper<CtrCore<A, u32>>;

/// The number of a block in the keystream: `u32`, `u64` or `u128`. An increment changes only the last bits of the counter block: as
/// many bits as the type has.
pub trait Counter: StreamCipherCounter + Into<u128> + TryFrom<u128> {
    /// The largest number.
    const MAX: u128 = u128::MAX >> (128 - 8 * size_of::<Self>());

    /// The last bits of a number: as many bits as the type has.
    fn truncated(number: u128) -> Self {
        Self::try_from(number & Self::MAX).ok().expect("the number has at most as many bits as the type")
    }
}

impl Counter for u32 {}
impl Counter for u64 {}
impl Counter for u128 {}

/// CTR in whole blocks. The type of the counter limits a message to 2^32 - 1, 2^64 - 1 or 2^128 - 1 blocks.
pub struct CtrCore<A, C> {
    cipher: A,
    /// The first counter block.
    start: u128,
    /// The number of the next block.
    position: u128,
    counter: PhantomData<fn() -> C>,
}

impl<A, C: Counter> CtrCore<A, C> {
    /// The next counter block.
    fn counter(&self) -> u128 {
        (self.start & !C::MAX) | (self.start.wrapping_add(self.position) & C::MAX)
    }
}

impl<KeySize, C: Counter> CtrCore<Aes<KeySize>, C> {
    fn apply(&mut self, blocks: &mut [Array<u8, U16>]) {
        let mut data = Array::slice_as_flattened_mut(blocks);
        while !data.is_empty() {
            let counter = self.counter();
            // The kernel increments all 128 bits of the block. Each call of the kernel therefore ends before the last bits, which
            // the type counts, wrap around.
            let until_wrap = (C::MAX - (counter & C::MAX)).saturating_add(1);
            let blocks = until_wrap.min(data.len() as u128 / 16);
            let (first, rest) = data.split_at_mut(16 * blocks as usize);
            self.cipher.key().ctr(&mut counter.to_be_bytes(), Span::in_place(first));
            self.position = self.position.wrapping_add(blocks) & C::MAX;
            data = rest;
        }
    }
}

impl<A, C> BlockSizeUser for CtrCore<A, C> {
    type BlockSize = U16;
}

impl<KeySize, C: Counter> StreamCipherCore for CtrCore<Aes<KeySize>, C> {
    fn remaining_blocks(&self) -> Option<usize> {
        (C::MAX - self.position).try_into().ok()
    }

    fn process_with_backend(&mut self, closure: impl StreamCipherClosure<BlockSize = U16>) {
        closure.call(&mut SingleBlocks(self));
    }

    fn write_keystream_blocks(&mut self, blocks: &mut [Block<Self>]) {
        blocks.fill(Block::<Self>::default());
        self.apply(blocks);
    }

    fn apply_keystream_blocks(&mut self, blocks: &mut [Block<Self>]) {
        self.apply(blocks);
    }

    fn apply_keystream_blocks_inout(&mut self, blocks: InOutBuf<'_, '_, Block<Self>>) {
        self.apply(blocks.into_out_with_copied_in());
    }
}

impl<KeySize, C: Counter> StreamCipherSeekCore for CtrCore<Aes<KeySize>, C> {
    type Counter = C;

    fn get_block_pos(&self) -> C {
        C::truncated(self.position)
    }

    fn set_block_pos(&mut self, position: C) {
        self.position = position.into();
    }
}

/// The keystream, one block at a time.
struct SingleBlocks<'a, A, C>(&'a mut CtrCore<A, C>);

impl<A, C> BlockSizeUser for SingleBlocks<'_, A, C> {
    type BlockSize = U16;
}

impl<A, C> ParBlocksSizeUser for SingleBlocks<'_, A, C> {
    type ParBlocksSize = U1;
}

impl<KeySize, C: Counter> StreamCipherBackend for SingleBlocks<'_, Aes<KeySize>, C> {
    fn gen_ks_block(&mut self, block: &mut Block<Self>) {
        self.0.write_keystream_blocks(std::slice::from_mut(block));
    }
}

impl<A, C> InnerUser for CtrCore<A, C> {
    type Inner = A;
}

impl<A, C> IvSizeUser for CtrCore<A, C> {
    type IvSize = U16;
}

impl<A, C> InnerIvInit for CtrCore<A, C> {
    fn inner_iv_init(cipher: A, iv: &Iv<Self>) -> Self {
        CtrCore { cipher, start: u128::from_be_bytes(iv.0), position: 0, counter: PhantomData }
    }
}

impl<A, C: Counter> IvState for CtrCore<A, C> {
    fn iv_state(&self) -> Iv<Self> {
        Array(self.counter().to_be_bytes())
    }
}

impl<A, C: Counter> SetIvState for CtrCore<A, C> {
    fn set_iv(&mut self, iv: &Iv<Self>) {
        (self.start, self.position) = (u128::from_be_bytes(iv.0), 0);
    }
}

impl<A: Clone, C> Clone for CtrCore<A, C> {
    fn clone(&self) -> Self {
        CtrCore { cipher: self.cipher.clone(), counter: PhantomData, ..*self }
    }
}

impl<A, C> Drop for CtrCore<A, C> {
    fn drop(&mut self) {
        self.start.zeroize();
        self.position.zeroize();
    }
}

impl<A: ZeroizeOnDrop, C> ZeroizeOnDrop for CtrCore<A, C> {}

crate::impl_debug!([A, C] CtrCore<A, C>, "CtrCore");
