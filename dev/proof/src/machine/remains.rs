//! The start and the end of functions: registers that a function does not preserve, and secrets that it leaves behind.

use std::collections::BTreeMap;

use super::{CALLER, Finding, Frame, Kind, Machine, Step, Stop};
use crate::memory::{Role, Writer};
use crate::value::Domain;

impl<D: Domain> Machine<D> {
    /// Starts the function at the address `function`, which returns to the address `after`.
    ///
    /// # Errors
    /// If the stack is full.
    pub fn enter(&mut self, function: u64, after: u64) -> Step {
        let preserved = self.preserved().collect();
        self.frames.push(Frame { function, preserved });
        match self.convention().link {
            Some(link) => {
                self.set_general_number(link, after.to_le_bytes().map(D::constant));
                Ok(())
            }
            None => self.push(after),
        }
    }

    /// Ends a function. The result is the return address of the function.
    ///
    /// # Errors
    /// If the stack is empty.
    pub fn leave(&mut self) -> Result<u64, Stop> {
        let target = match self.convention().link {
            Some(link) => self.general_number(link),
            None => *self.pop()?.first_chunk().expect("64 bytes"),
        };
        if let Some(frame) = self.frames.pop() {
            self.find_not_preserved(&frame);
        }
        self.public(Kind::Branch, "address to return to", &target)
    }

    /// The values of the registers that a function preserves, as in a [`Frame`].
    fn preserved(&self) -> impl Iterator<Item = [D::Byte; 8]> {
        let convention = self.convention();
        let general = convention.preserved.iter().map(|number| self.general[*number]);
        let low = |vector: &[D::Byte; 64]| *vector.first_chunk().expect("64 bytes");
        general.chain(self.vectors[convention.preserved_vectors.clone()].iter().map(low))
    }

    /// Adds a finding for each register that a function has not preserved.
    fn find_not_preserved(&mut self, frame: &Frame<D>) {
        let is_same =
            |(x, y): (&D::Byte, &D::Byte)| D::value(*x) == D::value(*y) && D::secret(*x) == D::secret(*y);
        let pairs = frame.preserved.iter().zip(self.preserved()).enumerate();
        let changed = pairs.filter(|(_, (before, after))| !before.iter().zip(after).all(is_same));
        let changed: Vec<usize> = changed.map(|(place, _)| place).collect();
        // LLVM's machine outliner makes functions of instructions that several functions share. They have no calling convention, and
        // change registers for their callers, which are checked.
        if changed.is_empty() || self.image().function_at(frame.function).starts_with("OUTLINED_FUNCTION_") {
            return;
        }
        let convention = self.convention();
        for place in changed {
            let (writer, register) = match convention.preserved.get(place) {
                Some(number) => (self.general_writers[*number], (convention.name)(*number)),
                None => {
                    let number = convention.preserved_vectors.start + place - convention.preserved.len();
                    (self.vector_writers[number], format!("{}{number}", convention.vector))
                }
            };
            let writer = writer.into();
            let detail = format!("{register}, written at {}", self.image().place(writer));
            let function = self.image().function_at(writer);
            let finding = Finding { kind: Kind::Preserved, function, bytes: 0, depth: 0, detail };
            *self.findings.entry(finding).or_default() += 1;
        }
    }

    /// Adds a finding for each function that has left secret bytes in registers, on the stack or in static variables. Copies of at least
    /// four bytes of a public result are not reported.
    pub fn find_left(&mut self, results: &[&[u8]]) {
        if self.follows_change() || !D::HAS_VALUES {
            return;
        }
        let mut left: BTreeMap<(Kind, Writer, String), usize> = BTreeMap::new();
        let mut depths: BTreeMap<String, usize> = BTreeMap::new();
        let convention = self.convention();
        let secrets = |bytes: &[D::Byte]| secret_places::<D>(bytes, results).len();
        let registers = self.general.iter().map(<[_; 8]>::as_slice).zip(self.general_writers).enumerate();
        for (index, (bytes, writer)) in registers {
            let name = (convention.name)(index);
            *left.entry((Kind::Register, writer, name)).or_default() += secrets(bytes);
        }
        for (index, (bytes, writer)) in self.vectors.iter().zip(self.vector_writers).enumerate() {
            *left.entry((Kind::Register, writer, format!("{}{index}", convention.vector))).or_default() +=
                secrets(bytes);
        }
        for (index, bytes) in self.masks.iter().enumerate() {
            *left.entry((Kind::Register, 0, format!("k{index}"))).or_default() += secrets(bytes);
        }
        for region in self.memory.regions() {
            let (kind, start) = match region.role {
                Role::Stack => (Kind::Stack, (self.lowest - region.base) as usize),
                Role::Image if region.is_writable => (Kind::Static, 0),
                _ => continue,
            };
            let writers = &region.writers()[start..];
            for place in secret_places::<D>(&region.bytes()[start..], results) {
                *left.entry((kind, writers[place], String::new())).or_default() += 1;
                if kind == Kind::Stack {
                    let function = self.image().function_at(writers[place].into());
                    // Places are in ascending order, so the first one is the lowest.
                    depths.entry(function).or_insert((CALLER - self.lowest) as usize - place);
                }
            }
        }
        let mut by_function: BTreeMap<(Kind, String), (usize, String)> = BTreeMap::new();
        let is_finding = |kind| convention.clears || kind == Kind::Static;
        left.retain(|(kind, ..), count| *count > 0 && is_finding(*kind));
        for ((kind, writer, name), count) in left {
            let function = self.image().function_at(writer.into());
            let place = self.image().place(writer.into());
            let (bytes, places) = by_function.entry((kind, function)).or_default();
            *bytes += count;
            // A report lists at most three places for each function.
            if places.matches(", written at").count() < 3 {
                let separator = if places.is_empty() { "" } else { "; " };
                let name = if name.is_empty() { name } else { format!("{name}: ") };
                places.push_str(&format!("{separator}{name}{count} bytes, written at {place}"));
            }
        }
        for ((kind, function), (bytes, detail)) in by_function {
            let depth = if kind == Kind::Stack { depths[&function] } else { 0 };
            *self.findings.entry(Finding { kind, function, bytes, depth, detail }).or_default() += 1;
        }
    }
}

/// The places of secret bytes, except those that are copies of at least four bytes of a public result. Copies may be adjacent.
pub(super) fn secret_places<D: Domain>(bytes: &[D::Byte], results: &[&[u8]]) -> Vec<usize> {
    let mut places = Vec::new();
    let mut rest = 0;
    while let Some(start) =
        bytes[rest..].iter().position(|byte| D::secret(*byte) != 0).map(|place| rest + place)
    {
        let run = bytes[start..].iter().take_while(|byte| D::secret(**byte) != 0);
        let values: Vec<u8> = run.map(|byte| D::value(*byte)).collect();
        rest = start + values.len();
        let mut at = 0;
        while at < values.len() {
            let copied = longest_copy(&values[at..], results);
            places.extend((copied == 0).then_some(start + at));
            at += copied.max(1);
        }
    }
    places
}

/// The greatest number of bytes, at least four, with which both the values and a part of a result start. 0 if there is no such number.
fn longest_copy(values: &[u8], results: &[&[u8]]) -> usize {
    let equal = |part: &[u8]| values.iter().zip(part).take_while(|(x, y)| x == y).count();
    let parts = results.iter().flat_map(|result| (0..result.len()).map(|start| &result[start..]));
    parts.map(equal).filter(|len| *len >= 4).max().unwrap_or(0)
}
