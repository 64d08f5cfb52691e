//! The time of a call: the invocation, the simulated clocks, and the work of the host.

use std::collections::BTreeMap;

use super::Error;
use super::kernels::Named;

/// The clock of the QPUs of a Raspberry Pi 1 or 2, in Hz.
pub const CLOCK_HZ: f64 = 250e6;

/// Seconds that an invocation of the QPUs takes in addition to the clocks of the QPUs.
///
/// The value is from Table 5.1, where n / rate is the time of a call of n bytes without copies. If the simulated clocks of 12 QPUs are
/// subtracted, 73.4, 72.9, 74.8, 73.0 and 74.6 us remain in the rows from 16 to 4096 bytes. Their mean is 73.7 us. The shortest times of
/// section 5.3, 97 and 270 us, confirm this value: without the clocks of one QPU, they are 73.9 and 73.3 us.
pub const INVOCATION: f64 = 73.7e-6;

/// Seconds of the host's work for a call, without the copies of bytes. In the first row of Table 5.1, a call of 16 bytes takes 246 us with
/// copies (65 kB/s) and 105 us without them (153 kB/s), so the host takes 141 us.
pub const HOST_CALL: f64 = 141e-6;

/// Seconds in which the host copies a byte to the GPU and back: 1 / 25087 kB/s - 1 / 33481 kB/s = 10.0 ns, from the last row of Table 5.1.
pub const HOST_BYTE: f64 = 10e-9;

/// Seconds of the host's work for a call that takes longer than [`LONG_CALL`] without this work, in addition to [`HOST_CALL`]. In Table
/// 5.2, 12 QPUs take 776 us for 1024 bytes (1320 kB/s), which is 150 us more than the other parts of the model. The column without copies
/// of Table 5.1 has no such difference, so it is work of the host, or a wait. Its cause is not known.
pub const HOST_LONG_CALL: f64 = 150e-6;

/// [`HOST_LONG_CALL`] is added if the QPUs and their invocation take more than this number of seconds. In Table 5.2, the rows of
/// 12 QPUs up to 256 bytes, with 0.28 ms, do not contain the additional time. The row of 1024 bytes, with 0.47 ms, contains it.
pub const LONG_CALL: f64 = 0.37e-3;

/// Seconds of a call without copies.
pub(super) fn kernel_seconds(clocks: f64, clock_hz: f64) -> f64 {
    INVOCATION + clocks / clock_hz
}

/// Seconds of a call with the copies by the host.
pub(super) fn call_seconds(clocks: f64, bytes: u64, clock_hz: f64) -> f64 {
    let kernel = kernel_seconds(clocks, clock_hz);
    let long = if kernel > LONG_CALL { HOST_LONG_CALL } else { 0.0 };
    kernel + HOST_CALL + long + HOST_BYTE * bytes as f64
}

/// The rate in kB/s of 1000 bytes.
pub(super) fn rate(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 / seconds / 1e3
}

/// Maximum number of iterations of a QPU in a run that is simulated completely. After this number of iterations the loop is periodic, so
/// the clocks of longer runs are extrapolated.
const SIMULATED: u64 = 48;

/// The clocks of this number of iterations before [`SIMULATED`] determine the clocks of the iterations that are not simulated.
const PERIOD: u64 = 32;

/// Clocks of runs of a kernel by length, with a key of 128 bits.
pub struct Lengths {
    named: &'static Named,
    qpus: u8,
    /// The clocks of runs that have been simulated, by their number of units.
    known: BTreeMap<u64, u64>,
}

impl Lengths {
    /// Runs of a kernel on a number of QPUs.
    pub fn of(named: &'static Named, qpus: u8) -> Lengths {
        Lengths { named, qpus, known: BTreeMap::new() }
    }

    /// Clocks of a run of a number of bytes, extrapolated if it is long.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the kernel does not run, which is a bug.
    pub fn clocks(&mut self, bytes: u64) -> Result<f64, Error> {
        let qpus = u64::from(self.qpus);
        let units = bytes.div_ceil(self.named.unit as u64).max(1);
        let turns = units / qpus;
        if turns <= SIMULATED {
            return Ok(self.simulated(units)? as f64);
        }
        // Two shorter runs are simulated. Their last, partial iteration has as many units as the last iteration of
        // the long run.
        let rest = units % qpus;
        let [short, long] = [SIMULATED - PERIOD, SIMULATED].map(|turns| turns * qpus + rest);
        let (short, long) = (self.simulated(short)?, self.simulated(long)?);
        let of_turn = (long - short) as f64 / PERIOD as f64;
        Ok(long as f64 + of_turn * (turns - SIMULATED) as f64)
    }

    /// Clocks of a run of whole units.
    fn simulated(&mut self, units: u64) -> Result<u64, Error> {
        if let Some(clocks) = self.known.get(&units) {
            return Ok(*clocks);
        }
        let run = self.named.simulate(128, self.qpus, units as usize * self.named.unit)?;
        self.known.insert(units, run.clocks);
        Ok(run.clocks)
    }
}
