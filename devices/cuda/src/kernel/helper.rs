//! Kernels that all families share.

use crate::compile::TENSOR_MODULE;
use crate::machine::Entry;

/// The kernels that compute the bit planes of round keys, and the kernels of the serial modes.
pub(crate) const CHAIN_KEYS: Entry = Entry { module: "chain", name: "chain_keys" };
pub(crate) const CHAIN_ENCRYPT: Entry = Entry { module: "chain", name: "chain_encrypt" };
pub(crate) const CHAIN_DECRYPT: Entry = Entry { module: "chain", name: "chain_decrypt" };
/// The kernels that compute the powers of hash keys, and the kernels of GHASH in tiles or with one thread for each message.
pub(crate) const GHASH_POWERS: Entry = Entry { module: "ghash", name: "ghash_powers" };
pub(crate) const GHASH_TILES: Entry = Entry { module: "ghash", name: "ghash_tiles" };
pub(crate) const GHASH_EACH: Entry = Entry { module: "ghash", name: "ghash_each" };
/// The kernel that computes the matrices of bits, which represent multiplications by powers of hash keys, and the kernel of GHASH that
/// multiplies tiles by these matrices.
pub(crate) const GHASH_MATRICES: Entry = Entry { module: TENSOR_MODULE, name: "ghash_matrices" };
pub(crate) const GHASH_TENSOR_TILES: Entry = Entry { module: TENSOR_MODULE, name: "ghash_tensor_tiles" };
/// The module of GHASH by carry-less multiplication. Only compilers that are newer than the default compiler generate its
/// machine code.
pub(crate) const CARRY_LESS: &str = "ghash_carry_less";
/// The kernels that replace `GHASH_POWERS`, `GHASH_TILES` and `GHASH_EACH` on a device with the carry-less multiply-add, and the
/// known-answer test of this instruction.
pub(crate) const CARRY_LESS_POWERS: Entry = carry_less("ghash_carry_less_powers");
pub(crate) const CARRY_LESS_TILES: Entry = carry_less("ghash_carry_less_tiles");
pub(crate) const CARRY_LESS_EACH: Entry = carry_less("ghash_carry_less_each");
pub(crate) const CARRY_LESS_PRODUCTS: Entry = carry_less("carry_less_products");

const fn carry_less(name: &'static str) -> Entry {
    Entry { module: CARRY_LESS, name }
}

/// Makes or compares tags.
pub(crate) const GCM_TAGS: Entry = Entry { module: "ghash", name: "gcm_tags" };
/// The first kernel describes the messages of a table for GCM. The second kernel sets the number of tiles of each
/// message at a level of GHASH.
pub(crate) const GCM_MESSAGES: Entry = Entry { module: "ghash", name: "gcm_messages" };
pub(crate) const UNIFORM_TILES: Entry = Entry { module: "ghash", name: "uniform_tiles" };

/// Kernels for the parts of OCB3 other than the whole blocks: masks of keys, offsets of messages, partial blocks
/// with checksums, and tags.
pub(crate) const OCB_KEYS: Entry = Entry { module: "ocb", name: "ocb_keys" };
pub(crate) const OCB_BEGIN: Entry = Entry { module: "ocb", name: "ocb_begin" };
pub(crate) const OCB_SUM: Entry = Entry { module: "ocb", name: "ocb_sum" };
pub(crate) const OCB_TAGS: Entry = Entry { module: "ocb", name: "ocb_tags" };

const fn helper(name: &'static str) -> Entry {
    Entry { module: "helpers", name }
}

/// Copies the ciphertext block before each tile to scratch memory, because decryption in place may overwrite the
/// block before the tile is processed.
pub(crate) const EDGES: Entry = helper("edges");
/// Copies new chaining states to segments.
pub(crate) const SET_STATES: Entry = helper("set_states");
/// Makes the segments of a table.
pub(crate) const TABLE_SEGMENTS: Entry = helper("table_segments");
/// Gathers parts of memory in one place.
pub(crate) const GATHER: Entry = helper("gather");
/// Writes chaining states and statuses of a table.
pub(crate) const TABLE_RESULTS: Entry = helper("table_results");
/// Zeroes the output of messages with wrong tags.
pub(crate) const ZERO_REFUSED: Entry = helper("zero_refused");
