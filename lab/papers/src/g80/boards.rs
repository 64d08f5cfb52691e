//! The graphics cards of both papers.

/// A graphics card.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Board {
    /// The name of the card.
    pub name: &'static str,
    /// The number of multiprocessors, each of which has eight processors.
    pub multiprocessors: u32,
    /// The clock of the processors in Hz.
    pub clock: f64,
    /// The throughput of the memory in bytes per second.
    pub memory: f64,
}

/// The larger card of the CUDA paper: 112 processors at 1500 MHz (its Table 1), memory of 256 bits at 1800 MHz.
pub const GT: Board = Board { name: "8800 GT", multiprocessors: 14, clock: 1.5e9, memory: 57.6e9 };

/// The smaller card of the CUDA paper: 16 processors at 900 MHz (its Table 1), memory of 64 bits at 800 MHz.
pub const GS: Board = Board { name: "8400 GS", multiprocessors: 2, clock: 0.9e9, memory: 6.4e9 };

/// The card of the thesis: 96 processors at 1200 MHz, memory of 320 bits at 1600 MHz (its section 2.3).
pub const GTS: Board = Board { name: "8800 GTS 640", multiprocessors: 12, clock: 1.2e9, memory: 64e9 };

/// A chip of one multiprocessor at 1400 MHz that was also sold as 8400 GS from the end of 2007 on.
pub const GS_G98: Board = Board { name: "8400 GS (G98)", multiprocessors: 1, clock: 1.4e9, memory: 6.4e9 };
