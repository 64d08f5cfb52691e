//! Events of a run, for traces and for totals of each instruction.

use super::{Counters, Vector};

/// Receives an event for each executed instruction.
pub trait Observer {
    /// Called after an instruction has been executed. The events of a QPU are in the order of their clocks. Events of different
    /// QPUs may be in any order.
    fn executed(&mut self, event: Event);

    /// Called before a QPU executes an instruction that prints a vector. This instruction is a `v8max` of the vector with
    /// itself by the mul ALU, with the condition "always" and without a destination. [`crate::lang::Kernel::print`] appends
    /// such an instruction.
    fn printed(&mut self, _qpu: u8, _address: u32, _vector: &Vector) {}
}

/// An observer that ignores all events.
impl Observer for () {
    #[inline]
    fn executed(&mut self, _: Event) {}
}

/// The execution of an instruction by a QPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The number of the QPU.
    pub qpu: u8,
    /// The address of the instruction in the program, in bytes.
    pub address: u32,
    /// The clock at which the instruction starts, after its stalls.
    pub clock: u64,
    /// Clocks for which the QPU waited before the instruction.
    pub stalls: Stalls,
}

/// Clocks for which a QPU waited, by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stalls {
    /// Clocks of waiting for the result of a texture unit.
    pub texture: u64,
    /// Clocks of waiting for the end of a DMA load.
    pub load: u64,
    /// Clocks of waiting for the end of a DMA store.
    pub store: u64,
    /// Clocks of waiting for a semaphore or the mutex.
    pub synchronization: u64,
}

impl Stalls {
    /// The sum of the clocks of all causes.
    pub fn total(&self) -> u64 {
        self.texture + self.load + self.store + self.synchronization
    }

    /// Returns the clocks of each cause with the cause as text. Causes without clocks are omitted.
    pub fn causes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let all = [
            ("texture unit", self.texture),
            ("DMA load", self.load),
            ("DMA store", self.store),
            ("synchronization", self.synchronization),
        ];
        all.into_iter().filter(|(_, clocks)| *clocks > 0)
    }

    /// Returns the stalls of an instruction. They are computed from the counters before and after the instruction, and from the
    /// clocks for which the instruction waited for another QPU.
    #[inline]
    pub(super) fn between(before: &Counters, after: &Counters, synchronization: u64) -> Stalls {
        Stalls {
            texture: after.tmu_stall_clocks - before.tmu_stall_clocks,
            load: after.load_stall_clocks - before.load_stall_clocks,
            store: after.store_stall_clocks - before.store_stall_clocks,
            synchronization,
        }
    }
}

impl std::ops::AddAssign for Stalls {
    fn add_assign(&mut self, other: Stalls) {
        self.texture += other.texture;
        self.load += other.load;
        self.store += other.store;
        self.synchronization += other.synchronization;
    }
}
