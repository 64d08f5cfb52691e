//! What the kernels' ways of doing AES have in common.

use crate::schedule::{Flow, Value};

pub(crate) type Block = [u8; 16];

/// One way to do AES in registers, in one direction.
///
/// Between the rounds a block may have a form of its own (another basis, other places of the bytes); round keys have
/// it too.
pub(crate) trait Cipher: Send + Sync {
    /// The round keys, in the order in which they are used, in the form that [`Cipher::run`] wants.
    fn key_form(&self, keys: &[Block]) -> Vec<Block>;

    /// A block in the form of the rounds, without any key. Linear.
    fn enter(&self, f: &mut Flow, block: Value) -> Value;

    /// The same done outside: for chaining values.
    fn enter_block(&self, block: Block) -> Block;

    /// All rounds, from an entered block to which the first round key has been added. If `chained`, also the entered
    /// result but for the last round key.
    fn run(&self, f: &mut Flow, keys: &[Value], entered: Value, chained: bool) -> (Value, Option<Value>);

    /// The first round of a counter block (entered, with the first round key) of which all but the last word is the same
    /// in the whole call, given what the rest of it comes to ([`Cipher::rest_of_first_round`]).
    fn first_round_of_counter(&self, _: &mut Flow, _: Value, _: Value) -> Value {
        unimplemented!("counter-mode caching is for tables")
    }

    /// What the first three words of a counter block and the second round key come to after the first round.
    fn rest_of_first_round(&self, _: &[Block], _: &Block) -> Block {
        unimplemented!("counter-mode caching is for tables")
    }
}
