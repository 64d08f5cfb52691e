//! What the kernels' ways of doing AES have in common.

use zeroize::Zeroizing;

use crate::schedule::{Flow, Value};

pub(crate) type Block = [u8; 16];

/// One way to do AES in registers, in one direction.
///
/// Between the rounds a block may have a form of its own (another basis, other places of the bytes); round keys have
/// it too.
pub(crate) trait Cipher: Send + Sync {
    /// The round keys, in the order in which they are used, in the form of the rounds. Takes the same time whatever the
    /// keys.
    fn key_form(&self, keys: &[Block]) -> Zeroizing<Vec<Block>> {
        Zeroizing::new(keys.to_vec())
    }

    /// A block in the form of the rounds, without any key. Linear.
    fn enter(&self, _: &mut Flow, block: Value) -> Value {
        block
    }

    /// The same done outside, for chaining values, in the same time whatever the block.
    fn enter_block(&self, block: Block) -> Block {
        block
    }

    /// One of the rounds but the last, by its number from 1 on.
    fn round(&self, f: &mut Flow, number: usize, x: Value, key: Value) -> Value;

    /// The last round. If `chained`, also the entered result but for the round key.
    fn last_round(
        &self,
        f: &mut Flow,
        number: usize,
        x: Value,
        key: Value,
        chained: bool,
    ) -> (Value, Option<Value>);

    /// All rounds, from an entered block to which the first round key has been added, after `done` rounds.
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

    /// The first round of counter blocks by parts, where the cipher can do that.
    fn caching(&self) -> Option<&dyn Caching> {
        None
    }
}

/// A cipher that does not do again what the first round makes of the first three words of all counter blocks.
pub(crate) trait Caching {
    /// The first round of a counter block (entered, with the first round key), given what the first three words come to.
    fn first_round(&self, f: &mut Flow, entered: Value, rest: Value) -> Value;

    /// What the first three words of a counter block and the second round key come to after the first round.
    fn rest_of_first_round(&self, keys: &[Block], counter: &Block) -> Zeroizing<Block>;
}
