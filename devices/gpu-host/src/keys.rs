//! The distinct keys of a chunk, for devices that identify keys by numbers.

use std::collections::HashMap;

use lockstep_core::Key;

use crate::messages::{Messages, Piece};

/// The keys of the pieces of a chunk, numbered in the order in which they occur. Two keys count as the same key only if they
/// are the same object.
pub struct PieceKeys<'d> {
    /// All keys, by number.
    pub all: Vec<&'d Key>,
    /// For each piece: the number of the key and, for XTS, the number of the tweak key.
    pub numbers: Vec<(u32, u32)>,
}

impl<'d> PieceKeys<'d> {
    /// Finds the distinct keys of these pieces, and numbers them.
    pub fn of(pieces: &[Piece], messages: &Messages<'_, 'd>) -> Self {
        let (mut all, mut known) = (Vec::<&'d Key>::new(), HashMap::<*const Key, u32>::new());
        let mut number = |key: &'d Key| match all.last() {
            // Neighbouring pieces often have the same key, so the last key is compared first.
            Some(last) if std::ptr::eq(*last, key) => all.len() as u32 - 1,
            _ => *known.entry(key).or_insert_with(|| {
                all.push(key);
                all.len() as u32 - 1
            }),
        };
        let numbers = pieces.iter().map(|piece| {
            let key = number(messages.key(piece.segment));
            (key, messages.tweak(piece.segment).map_or(0, |tweak| number(tweak.key)))
        });
        PieceKeys { numbers: numbers.collect(), all }
    }
}

#[cfg(test)]
mod tests;
