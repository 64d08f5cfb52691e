//! State that QPUs share with each other and with the host.

use super::cache::Cache;
use super::counters::Counters;
use super::dma::Engine;
use super::memory::Memory;
use super::qpu::Vector;
use super::tmu::TextureUnit;
use super::vpm::Vpm;
use super::{FaultKind, QPUS_PER_SLICE, SLICES};

/// The largest value of a semaphore, which has four bits.
const MOST: u8 = 15;

/// Bytes and ways of the caches (vc4asm's addendum): of the two caches of a slice, for instructions and for uniforms, and of
/// the level 2 cache.
const SLICE_CACHE: (u32, usize) = (4096, 4);
const L2_CACHE: (u32, usize) = (32 << 10, 4);

/// Texture units of a slice.
const UNITS: usize = 2;

struct SliceCaches {
    instructions: Cache,
    uniforms: Cache,
}

/// The state that QPUs share: the memory, the VPM, semaphores, texture units and caches.
pub(super) struct Shared<'m> {
    pub(super) memory: Memory<'m>,
    pub(super) vpm: Vpm,
    units: Vec<TextureUnit>,
    slices: Vec<SliceCaches>,
    l2: Cache,
    semaphores: [u8; 16],
    /// The number of the QPU that has locked the mutex.
    mutex: Option<u8>,
    /// The clocks at which the DMA engines become free.
    load_free_at: u64,
    store_free_at: u64,
    /// The number of interrupts of the host.
    pub(super) interrupts: u64,
    /// The clock of the last interrupt.
    interrupted_at: Option<u64>,
    pub(super) counters: Counters,
}

impl<'m> Shared<'m> {
    pub(super) fn new(memory: Memory<'m>, vpm: u32, texture_latency: u64) -> Shared<'m> {
        let (bytes, ways) = SLICE_CACHE;
        let caches =
            || SliceCaches { instructions: Cache::new(bytes, ways), uniforms: Cache::new(bytes, ways) };
        Shared {
            memory,
            vpm: Vpm::new(vpm),
            units: (0..UNITS * SLICES).map(|_| TextureUnit::new(texture_latency)).collect(),
            slices: (0..SLICES).map(|_| caches()).collect(),
            l2: Cache::new(L2_CACHE.0, L2_CACHE.1),
            semaphores: [0; 16],
            mutex: None,
            load_free_at: 0,
            store_free_at: 0,
            interrupts: 0,
            interrupted_at: None,
            counters: Counters::default(),
        }
    }

    /// Decrements or increments a semaphore. Returns false if the QPU must wait.
    pub(super) fn change_semaphore(&mut self, number: u8, decrements: bool) -> bool {
        let semaphore = &mut self.semaphores[usize::from(number)];
        let next = if decrements {
            semaphore.checked_sub(1)
        } else {
            Some(*semaphore + 1).filter(|next| *next <= MOST)
        };
        *semaphore = next.unwrap_or(*semaphore);
        next.is_some()
    }

    /// Interrupts the host at a clock.
    pub(super) fn interrupt(&mut self, now: u64) {
        self.interrupts += 1;
        self.interrupted_at = Some(now);
    }

    pub(super) fn stores_after_interrupt(&self) -> bool {
        self.interrupted_at.is_some_and(|clock| self.store_free_at > clock)
    }

    /// The sum of all semaphores.
    pub(super) fn semaphores(&self) -> u32 {
        self.semaphores.iter().copied().map(u32::from).sum()
    }

    pub(super) fn mutex_is_locked(&self) -> bool {
        self.mutex.is_some()
    }

    /// Locks the mutex. Returns false if another QPU has locked it.
    pub(super) fn lock(&mut self, qpu: u8) -> Result<bool, FaultKind> {
        match self.mutex {
            Some(owner) if owner == qpu => Err(FaultKind::Mutex),
            Some(_) => Ok(false),
            None => {
                self.mutex = Some(qpu);
                Ok(true)
            }
        }
    }

    /// Unlocks the mutex, which the QPU must have locked.
    pub(super) fn unlock(&mut self, qpu: u8) -> Result<(), FaultKind> {
        self.mutex.take_if(|owner| *owner == qpu).map(|_| ()).ok_or(FaultKind::Mutex)
    }

    fn read_l2(&mut self, address: u32) {
        let hit = self.l2.read(address);
        self.counters.l2_hits += u64::from(hit);
        self.counters.l2_misses += u64::from(!hit);
    }

    /// Counts the fetch of a line of instructions. The simulator does not store programs in the memory of the data, so a fetch
    /// does not replace lines of data in the level 2 cache.
    pub(super) fn fetch_line(&mut self, qpu: u8, address: u32) {
        let hit = self.slices[usize::from(qpu) / QPUS_PER_SLICE].instructions.read(address);
        self.counters.instruction_hits += u64::from(hit);
        self.counters.instruction_misses += u64::from(!hit);
    }

    /// Reads the uniform at an address, and counts a hit or a miss of the uniforms cache.
    pub(super) fn uniform(&mut self, qpu: u8, address: u32) -> Result<u32, FaultKind> {
        let value = self.memory.load(address)?;
        let hit = self.slices[usize::from(qpu) / QPUS_PER_SLICE].uniforms.read(address);
        self.counters.uniform_hits += u64::from(hit);
        self.counters.uniform_misses += u64::from(!hit);
        if !hit {
            self.read_l2(address);
        }
        Ok(value)
    }

    /// Requests words from a texture unit of a QPU's slice. Returns the words, and the clock at which they are ready.
    pub(super) fn request(
        &mut self,
        qpu: u8,
        unit: usize,
        addresses: &Vector,
        now: u64,
    ) -> Result<(Vector, u64), FaultKind> {
        let slice = usize::from(qpu) / QPUS_PER_SLICE;
        let physical = slice * UNITS + unit;
        let mut words = [0; 16];
        let mut last = None;
        for (word, address) in words.iter_mut().zip(addresses) {
            *word = self.memory.load(*address)?;
            if last.replace(address / 64) != Some(address / 64) && !self.units[physical].cache.read(*address)
            {
                self.counters.texture_misses += 1;
                self.read_l2(*address);
            }
        }
        self.counters.texture_quads += 4;
        Ok((words, self.units[physical].request(now)))
    }

    /// Starts a DMA load at a clock, and records when it ends.
    pub(super) fn start_load(
        &mut self,
        engine: &mut Engine,
        address: u32,
        now: u64,
    ) -> Result<(), FaultKind> {
        self.counters.dma_loads += 1;
        engine.load(address, now, &mut self.load_free_at, &self.memory, &mut self.vpm)
    }

    /// Starts a DMA store at a clock, and records when it ends.
    pub(super) fn start_store(
        &mut self,
        engine: &mut Engine,
        address: u32,
        now: u64,
    ) -> Result<(), FaultKind> {
        self.counters.dma_stores += 1;
        engine.store(address, now, &mut self.store_free_at, &mut self.memory, &mut self.vpm)
    }
}
