//! The registers of a part: which values they have, and which are free.

use super::super::word::Location;
use crate::isa::registers::FILE;

/// Accumulators that values may be in.
pub(super) const ACCUMULATORS: u8 = 4;

/// Where a value is, and from which word on it can be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) location: Location,
    pub(super) from: usize,
}

/// The values that registers have.
pub(super) struct Registers {
    a: [Option<usize>; FILE as usize],
    b: [Option<usize>; FILE as usize],
    pub(super) accumulators: [Option<usize>; ACCUMULATORS as usize],
    /// Registers that will be written for what follows, and the heights of the operations that do so.
    pub(super) homes: Vec<(Location, usize)>,
}

impl Registers {
    /// Registers without values.
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

    /// A register for a value all of whose readers are higher than a height. One that an operation will write for what follows must
    /// be read before: that operation must be lower than all readers, so that none of them waits for it.
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
    /// The kind of a register. r4, which is none of these, counts as an accumulator.
    pub(super) fn of(location: Location) -> Kind {
        match location {
            Location::A(_) => Kind::A,
            Location::B(_) => Kind::B,
            Location::Accumulator(_) | Location::Received => Kind::Accumulator,
        }
    }
}

/// Orders of preference, by the number of a hint.
pub(super) const ORDERS: [[Kind; 3]; 4] = [
    [Kind::Accumulator, Kind::A, Kind::B],
    [Kind::Accumulator, Kind::B, Kind::A],
    [Kind::A, Kind::B, Kind::Accumulator],
    [Kind::B, Kind::A, Kind::Accumulator],
];
