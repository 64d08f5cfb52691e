//! The common interface of the kernels' AES implementations.

use lockstep_core::key::inverse_mix_columns;
use zeroize::Zeroizing;

use crate::schedule::{Flow, Value};

pub(crate) type Block = [u8; 16];

/// An implementation of AES in registers, in one direction.
///
/// Between the rounds a block may be in an internal form, which has another basis or permuted bytes. The round keys
/// are in the same form.
pub(crate) trait AesRounds: Send + Sync {
    /// Returns the round keys in the order of their use, in the internal form. Takes constant time.
    fn key_form(&self, keys: &[Block]) -> Zeroizing<Vec<Block>> {
        Zeroizing::new(keys.to_vec())
    }

    /// Converts a block to the internal form, without any key. This is a linear map.
    fn enter(&self, _: &mut Flow, block: Value) -> Value {
        block
    }

    /// Does the same as [`AesRounds::enter`], but outside the SPU program. It is used for chaining values. Takes constant time.
    fn enter_block(&self, block: Block) -> Block {
        block
    }

    /// Computes a round other than the last one. Rounds are numbered from 1.
    fn round(&self, f: &mut Flow, number: usize, x: Value, key: Value) -> Value;

    /// Computes the last round. If `chained`, also returns the result in the internal form, without the last round key.
    fn last_round(
        &self,
        f: &mut Flow,
        number: usize,
        x: Value,
        key: Value,
        chained: bool,
    ) -> (Value, Option<Value>);

    /// All rounds after the first `done` rounds. `entered` is in the internal form. It is the result of the first
    /// `done` rounds or, if `done` is 0, the block with the first round key added.
    fn run(
        &self,
        f: &mut Flow,
        keys: &[Value],
        done: usize,
        entered: Value,
        chained: bool,
    ) -> (Value, Option<Value>) {
        let last = keys.len() - 1;
        let x = (done + 1..last).fold(entered, |x, number| self.round(f, number, x, keys[number]));
        self.last_round(f, last, x, keys[last], chained)
    }

    /// Returns the partial evaluation of the first round for counter blocks, if the cipher supports it.
    fn caching(&self) -> Option<&dyn Caching> {
        None
    }
}

/// A cipher that computes a part of the first round only once per call. The counter blocks of a call differ only in the
/// last word, so the contribution of the first three words to the first round is constant.
pub(crate) trait Caching {
    /// Computes the first round of a counter block. `entered` is the block in the internal form with the first round key added, and `rest`
    /// is the result of [`Caching::rest_of_first_round`].
    fn first_round(&self, f: &mut Flow, entered: Value, rest: Value) -> Value;

    /// Returns what the first three words of a counter block and the second round key contribute to the first round.
    fn rest_of_first_round(&self, keys: &[Block], counter: &Block) -> Zeroizing<Block>;
}

/// Returns the round keys of the equivalent inverse cipher (FIPS 197, section 5.3.5), in the order of their use. Takes constant time.
pub(crate) fn inverse_key_form(keys: &[Block]) -> Zeroizing<Vec<Block>> {
    let last = keys.len() - 1;
    let form = |(round, key): (usize, &Block)| match round {
        0 => *key,
        round if round == last => *key,
        _ => inverse_mix_columns(key),
    };
    Zeroizing::new(keys.iter().rev().enumerate().map(form).collect())
}
