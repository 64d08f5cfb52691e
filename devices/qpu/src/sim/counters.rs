//! The counters of a run. They correspond to the performance counters of the chip that concern QPUs.

/// Totals of a run, for all QPUs together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Clocks in which a QPU had ended while another was running.
    pub idle_clocks: u64,
    /// Clocks in which instructions were executed.
    pub instruction_clocks: u64,
    /// Clocks in which QPUs waited for texture units.
    pub tmu_stall_clocks: u64,
    /// Clocks in which QPUs waited for DMA stores.
    pub store_stall_clocks: u64,
    /// Clocks in which QPUs waited for DMA loads.
    pub load_stall_clocks: u64,
    /// Clocks in which QPUs waited for semaphores and the mutex.
    pub synchronization_clocks: u64,
    /// Lines of instructions that were in the instruction cache of a slice.
    pub instruction_hits: u64,
    /// Lines of instructions that were not in the instruction cache of a slice.
    pub instruction_misses: u64,
    /// Uniforms that were in the uniforms cache of a slice.
    pub uniform_hits: u64,
    /// Uniforms that were not in the uniforms cache of a slice.
    pub uniform_misses: u64,
    /// Requests to texture units, in quads.
    pub texture_quads: u64,
    /// Lines with requested elements that were not in the cache of their texture unit.
    pub texture_misses: u64,
    /// Lines that were in the cache of level 2.
    pub l2_hits: u64,
    /// Lines that were not in the cache of level 2.
    pub l2_misses: u64,
    /// The number of DMA loads of all QPUs.
    pub dma_loads: u64,
    /// The number of DMA stores of all QPUs.
    pub dma_stores: u64,
}
