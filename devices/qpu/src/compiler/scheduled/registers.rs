//! The registers of a part: the values in them, and the free registers.

use super::super::word::Location;
use crate::isa::registers::FILE;

/// Number of accumulators that may have values.
pub(super) const ACCUMULATORS: u8 = 4;

/// The location of a value, and the first word that can read it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) location: Location,
    pub(super) from: usize,
}

/// The values in the registers.
pub(super) struct Registers {
    a: [Option<usize>; FILE as usize],
    b: [Option<usize>; FILE as usize],
    pub(super) accumulators: [Option<usize>; ACCUMULATORS as usize],
    /// The registers whose values are needed after the part. For each of them, the height of the operation that writes it.
    pub(super) homes: Vec<(Location, usize)>,
}

impl Registers {
    /// Registers without values, for a part with these homes.
    pub(super) fn new(homes: Vec<(Location, usize)>) -> Registers {
        Registers {
            a: [None; FILE as usize],
            b: [None; FILE as usize],
            accumulators: [None; ACCUMULATORS as usize],
            homes,
        }
    }

    /// The value in a register.
    pub(super) fn at(&self, location: Location) -> Option<usize> {
        match location {
            Location::A(number) => self.a[usize::from(number)],
            Location::B(number) => self.b[usize::from(number)],
            Location::Accumulator(number) => self.accumulators[usize::from(number)],
            Location::Received => None,
        }
    }

    pub(super) fn holder(&mut self, location: Location) -> Option<&mut Option<usize>> {
        match location {
            Location::A(number) => self.a.get_mut(usize::from(number)),
            Location::B(number) => self.b.get_mut(usize::from(number)),
            Location::Accumulator(number) => self.accumulators.get_mut(usize::from(number)),
            Location::Received => None,
        }
    }

    /// Returns a free register for a value whose readers all have heights above `height`. An operation of the part may have to
    /// write the register for a later part. In this case the value must be read before this write. The height of the writing
    /// operation must therefore be below the heights of all readers, so that no reader depends on it.
    pub(super) fn free(&self, kind: Kind, height: usize) -> Option<Location> {
        let first = |holders: &[Option<usize>], location: fn(u8) -> Location| {
            let all = holders.iter().zip(0..).filter(|(holder, _)| holder.is_none());
            all.map(|(_, number)| location(number)).find(|location| self.is_allowed(*location, height))
        };
        match kind {
            Kind::A => first(&self.a, Location::A),
            Kind::B => first(&self.b, Location::B),
            Kind::Accumulator => first(&self.accumulators, Location::Accumulator),
        }
    }

    pub(super) fn is_allowed(&self, location: Location, height: usize) -> bool {
        let written = self.homes.iter().find(|(home, _)| *home == location);
        written.is_none_or(|(_, writer)| height > *writer)
    }
}

/// A kind of register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    A,
    B,
    Accumulator,
}

impl Kind {
    /// Returns the kind of a register. r4 counts as an accumulator, although values cannot be assigned to it.
    pub(super) fn of(location: Location) -> Kind {
        match location {
            Location::A(_) => Kind::A,
            Location::B(_) => Kind::B,
            Location::Accumulator(_) | Location::Received => Kind::Accumulator,
        }
    }
}

/// Orders of preference, indexed by the kind of a hint.
pub(super) const ORDERS: [[Kind; 3]; 4] = [
    [Kind::Accumulator, Kind::A, Kind::B],
    [Kind::Accumulator, Kind::B, Kind::A],
    [Kind::A, Kind::B, Kind::Accumulator],
    [Kind::B, Kind::A, Kind::Accumulator],
];
