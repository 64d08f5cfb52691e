//! What the kernels' ways of doing AES have in common.

use zeroize::Zeroizing;

use crate::schedule::{Flow, Value};

pub(crate) type Block = [u8; 16];

/// One way to do AES in registers, in one direction.
///
/// Between the rounds a block may have a form of its own (another basis, other places of the bytes); round keys have
/// it too.
pub(crate) trait Cipher: Send + Sync {
    /// The round keys, in the order in which they are used, in the form that [`Cipher::run`] wants. Takes the same time
    /// whatever the keys.
    fn key_form(&self, keys: &[Block]) -> Zeroizing<Vec<Block>>;

    /// A block in the form of the rounds, without any key. Linear.
    fn enter(&self, f: &mut Flow, block: Value) -> Value;

    /// The same done outside, for chaining values, in the same time whatever the block.
    fn enter_block(&self, block: Block) -> Block;

    /// All rounds, from an entered block to which the first round key has been added. If `chained`, also the entered
    /// result but for the last round key.
    fn run(&self, f: &mut Flow, keys: &[Value], entered: Value, chained: bool) -> (Value, Option<Value>);

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
