//! The vertex pipe memory (VPM): 64 rows of 16 words, which all QPUs and the DMA engines read and write (Broadcom's
//! guide, section 7).

use zeroize::Zeroize;

use super::FaultKind;
use super::qpu::Vector;
use crate::isa::ELEMENTS;

/// Number of rows that QPUs can access.
const ROWS: usize = 64;

/// A word of the VPM.
#[derive(Debug, Clone, Copy)]
struct Cell {
    value: u32,
    /// The clock at which the last DMA load that writes this word ends. 0 if there was no load.
    loaded_at: u64,
    /// The clock at which the last DMA store that reads this word ends. 0 if there was no store.
    stored_at: u64,
}

/// The fields of a setup, which determine the positions of vectors in the VPM.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    is_horizontal: bool,
    is_laned: bool,
    /// Bits of an element: 8, 16 or 32.
    bits: u32,
    /// The address of the next vector. The unit of the address depends on the other fields.
    address: u32,
    /// The number that is added to the address after each vector.
    stride: u32,
    /// For a read, the number of vectors that have not been read yet.
    pub(super) left: u32,
}

impl Access {
    /// Parses a word that sets up reads or writes.
    pub(super) fn of_setup(word: u32) -> Result<Access, FaultKind> {
        let bits = match word >> 8 & 3 {
            0 => 8,
            1 => 16,
            2 => 32,
            _ => return Err(FaultKind::Setup(word)),
        };
        let or_full = |value: u32, full: u32| if value == 0 { full } else { value };
        Ok(Access {
            is_horizontal: word >> 11 & 1 == 1,
            is_laned: word >> 10 & 1 == 1,
            bits,
            address: word & 0xff,
            stride: or_full(word >> 12 & 0x3f, 64),
            left: or_full(word >> 20 & 0xf, 16),
        })
    }

    /// The row and column of an element, and its lowest bit in the word.
    fn place(&self, element: usize) -> (usize, usize, u32) {
        // A word has 1, 2 or 4 parts. In the laned form, the lowest bits of the address select one of these parts. In the
        // packed form, they select the group of words that contains the elements.
        let parts = 32 / self.bits;
        let (part, vector) = (self.address % parts, (self.address / parts) as usize);
        let (along, part) = if self.is_laned {
            (element, part)
        } else {
            let words = ELEMENTS / parts as usize;
            (part as usize * words + element / parts as usize, element as u32 % parts)
        };
        let (row, column) =
            if self.is_horizontal { (vector, along) } else { (vector / 16 * 16 + along, vector % 16) };
        (row % ROWS, column, part * self.bits)
    }

    fn mask(&self) -> u32 {
        u32::MAX >> (32 - self.bits)
    }

    fn advance(&mut self) {
        self.address = self.address.wrapping_add(self.stride);
    }
}

pub(super) struct Vpm {
    cells: Vec<Cell>,
}

impl Drop for Vpm {
    fn drop(&mut self) {
        self.cells.iter_mut().for_each(|cell| cell.value.zeroize());
    }
}

impl Vpm {
    /// A VPM in which all words have the given value.
    pub(super) fn new(value: u32) -> Vpm {
        Vpm { cells: vec![Cell { value, loaded_at: 0, stored_at: 0 }; ROWS * ELEMENTS] }
    }

    /// Reads the next vector.
    pub(super) fn read(&self, access: &mut Access, now: u64) -> Result<Vector, FaultKind> {
        let mut vector = [0; ELEMENTS];
        for (element, value) in vector.iter_mut().enumerate() {
            let (row, column, shift) = access.place(element);
            let cell = &self.cells[row * ELEMENTS + column];
            if cell.loaded_at > now {
                return Err(FaultKind::VpmBusy { row: row as u8 });
            }
            *value = cell.value >> shift & access.mask();
        }
        access.advance();
        Ok(vector)
    }

    /// Writes the next vector.
    pub(super) fn write(&mut self, access: &mut Access, vector: &Vector, now: u64) -> Result<(), FaultKind> {
        for (element, value) in vector.iter().enumerate() {
            let (row, column, shift) = access.place(element);
            let cell = &mut self.cells[row * ELEMENTS + column];
            if cell.loaded_at.max(cell.stored_at) > now {
                return Err(FaultKind::VpmBusy { row: row as u8 });
            }
            let mask = access.mask() << shift;
            cell.value = cell.value & !mask | value << shift & mask;
        }
        access.advance();
        Ok(())
    }

    /// Reads a word for a DMA store. The store uses the word up to the clock `until`.
    pub(super) fn store(
        &mut self,
        row: usize,
        column: usize,
        now: u64,
        until: u64,
    ) -> Result<u32, FaultKind> {
        let cell = self.cell(row, column)?;
        if cell.loaded_at > now {
            return Err(FaultKind::VpmBusy { row: row as u8 });
        }
        cell.stored_at = cell.stored_at.max(until);
        Ok(cell.value)
    }

    /// Writes a word for a DMA load, which ends at the clock `until`.
    pub(super) fn load(
        &mut self,
        row: usize,
        column: usize,
        value: u32,
        now: u64,
        until: u64,
    ) -> Result<(), FaultKind> {
        let cell = self.cell(row, column)?;
        if cell.loaded_at.max(cell.stored_at) > now {
            return Err(FaultKind::VpmBusy { row: row as u8 });
        }
        (cell.value, cell.loaded_at) = (value, until);
        Ok(())
    }

    fn cell(&mut self, row: usize, column: usize) -> Result<&mut Cell, FaultKind> {
        match row < ROWS && column < ELEMENTS {
            true => Ok(&mut self.cells[row * ELEMENTS + column]),
            false => Err(FaultKind::OutsideVpm { row: row as u32, column: column as u32 }),
        }
    }
}
