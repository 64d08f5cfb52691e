//! Bringing data in and out: double-buffered transfers at the chip's bandwidth.
//!
//! What is public about the chip: an SPE's memory flow controller moves 16 bytes in each direction per bus cycle, and
//! the bus runs at half the processor's clock, so 8 bytes a clock each way; memory gives 25.6 GB/s for all SPEs
//! and both directions together, which is 8 bytes a clock at 3.2 GHz. A transfer has at most 16 KiB, and the first byte takes some
//! hundred clocks (measured at about 90 ns by Kistler, Perrone and Petrini, IEEE Micro 2006).

/// Clocks per second of the PlayStation 3, which the paper measured on.
pub const CLOCK_HZ: f64 = 3.192e9;

/// The transfer engine of one SPE.
#[derive(Debug, Clone, Copy)]
pub struct Dma {
    /// SPEs that share the memory.
    pub sharers: u32,
}

/// One piece of work: bytes in, clocks of computing, bytes out.
#[derive(Debug, Clone, Copy)]
pub struct Transfer {
    /// Bytes read from memory before.
    pub bytes_in: u64,
    /// Clocks of the kernel.
    pub clocks: u64,
    /// Bytes written to memory after.
    pub bytes_out: u64,
}

impl Dma {
    /// The most bytes of one transfer.
    pub const LARGEST: usize = 16 * 1024;
    /// Clocks until the first byte.
    pub const LATENCY: u64 = 290;
    /// Bytes a clock between an SPE and the bus, each way.
    pub const PORT: f64 = 8.0;
    /// Bytes a clock of the memory, both ways, all SPEs together.
    pub const MEMORY: f64 = 25.6e9 / CLOCK_HZ;

    /// Clocks that so many bytes take, one way, when all sharers transfer at once.
    pub fn clocks(&self, bytes: u64) -> u64 {
        if bytes == 0 {
            return 0;
        }
        let rate = Self::PORT.min(Self::MEMORY / f64::from(self.sharers.max(1)));
        Self::LATENCY * bytes.div_ceil(Self::LARGEST as u64).min(1) + (bytes as f64 / rate).ceil() as u64
    }
}

/// Clocks of a row of pieces with two buffers: while one is computed, the next comes in and the one before goes
/// out, one transfer at a time since memory serves both directions from one bandwidth.
pub fn overlapped(dma: Dma, pieces: &[Transfer]) -> u64 {
    // When the engine and the processor are free, and when each buffer may be filled again.
    let mut engine = 0;
    let mut processor = 0;
    let mut buffer_free = [0u64; 2];
    let mut waiting: Option<(usize, u64, u64)> = None;
    for (i, piece) in pieces.iter().enumerate() {
        let arrived = engine.max(buffer_free[i % 2]) + dma.clocks(piece.bytes_in);
        engine = arrived;
        if let Some((buffer, done, bytes)) = waiting.take() {
            engine = engine.max(done) + dma.clocks(bytes);
            buffer_free[buffer] = engine;
        }
        processor = processor.max(arrived) + piece.clocks;
        waiting = Some((i % 2, processor, piece.bytes_out));
    }
    if let Some((_, done, bytes)) = waiting {
        engine = engine.max(done) + dma.clocks(bytes);
    }
    engine.max(processor)
}
