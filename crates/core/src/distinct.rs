//! The keys of a batch, each once: for devices that are handed keys by number.

use std::collections::HashMap;

use crate::key::Key;

/// Keys in the order in which they were met. They are the same if they are the same object.
#[derive(Default)]
pub struct DistinctKeys<'d> {
    all: Vec<&'d Key>,
    numbers: HashMap<*const Key, u32>,
}

impl<'d> DistinctKeys<'d> {
    /// The number of a key.
    pub fn number(&mut self, key: &'d Key) -> u32 {
        match self.all.last() {
            Some(last) if std::ptr::eq(*last, key) => self.all.len() as u32 - 1,
            _ => *self.numbers.entry(key).or_insert_with(|| {
                self.all.push(key);
                self.all.len() as u32 - 1
            }),
        }
    }

    /// All of them, by number.
    pub fn all(&self) -> &[&'d Key] {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_number() {
        let [a, b] = [Key::new(&[0; 16]).unwrap(), Key::new(&[0; 16]).unwrap()];
        let mut keys = DistinctKeys::default();
        assert_eq!([&a, &a, &b, &a, &b].map(|key| keys.number(key)), [0, 0, 1, 0, 1]);
        assert_eq!(keys.all().len(), 2);
    }
}
