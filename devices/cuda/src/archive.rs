//! The archive of machine code that a build embeds. `tools/cuda_kernels.py` makes it and describes its format.
//!
//! The archive consists of units, which are compressed separately. A unit contains one module, or a few modules that share much
//! code, for one target. A module is unpacked when its first kernel is launched. All modules before it in its unit are unpacked
//! at the same time. The code and the decoder of a unit stay in memory until the last module of the unit has been unpacked. If
//! a module of the unit is needed again after that, the unit is unpacked from its start.

use std::io::{self, Read};
use std::ops::Range;
#[cfg(test)]
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use lzma_rust2::LzmaReader;

/// The first line.
const HEAD: &str = "lockstep-kernels 1";

/// An upper limit of the length of a unit in bytes. Every unit is shorter.
const LONGEST_UNIT: usize = 256 << 20;

/// The target of code that the driver compiles.
const PTX: &str = "ptx";

/// Memory limit of the decoder in KiB. Units need a few MiB.
const DECODER_KIB: u32 = 64 << 10;

/// A compute capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Architecture {
    pub(crate) major: u32,
    pub(crate) minor: u32,
}

impl Architecture {
    pub(crate) fn number(self) -> u32 {
        10 * self.major + self.minor
    }

    /// True if the kernels are for this architecture: Pascal and later.
    pub(crate) fn is_supported(self) -> bool {
        self.major >= 6
    }

    /// True if the tensor units multiply matrices of bits, as `kernels/common/tensor.cuh` requires. This is the case for
    /// compute capability 8.0 to 9.0. Later architectures emulate these products.
    pub(crate) fn has_tensor_bits(self) -> bool {
        (8..10).contains(&self.major)
    }

    /// True if code for a target such as `sm_90` runs on this architecture: the target has the same major version and
    /// is not newer.
    pub(crate) fn runs(self, target: &str) -> bool {
        let number = target.strip_prefix("sm_").and_then(|number| number.parse::<u32>().ok());
        number.is_some_and(|number| number / 10 == self.major && number <= self.number())
    }
}

#[derive(Default)]
pub(crate) struct Archive {
    units: Vec<Unit>,
    modules: Vec<Module>,
}

#[derive(Default)]
struct Unit {
    packed: &'static [u8],
    len: usize,
    /// The decoder and the code that it has unpacked. `None` if no module of the unit, or the last one, has been unpacked.
    begun: Mutex<Option<Begun>>,
    /// Number of bytes that were unpacked so far.
    #[cfg(test)]
    unpacked: AtomicU64,
}

/// A unit that is partly unpacked.
struct Begun {
    decoder: Box<dyn Read + Send>,
    code: Vec<u8>,
}

impl Unit {
    fn begin(&self) -> io::Result<Begun> {
        let decoder: Box<dyn Read + Send> = match self.packed.len() == self.len {
            true => Box::new(self.packed),
            false => Box::new(LzmaReader::new_mem_limit(self.packed, DECODER_KIB, None)?),
        };
        Ok(Begun { decoder, code: Vec::new() })
    }

    /// Unpacks the code up to the end of the range, and returns the bytes of the range.
    fn code(&self, bytes: Range<usize>) -> io::Result<Vec<u8>> {
        let mut kept = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let mut begun = kept.take().map_or_else(|| self.begin(), Ok)?;
        let done = begun.code.len().min(bytes.end);
        if done < bytes.end {
            begun.code.resize(bytes.end, 0);
            begun.decoder.read_exact(&mut begun.code[done..])?;
            #[cfg(test)]
            self.unpacked.fetch_add((bytes.end - done) as u64, Ordering::Relaxed);
        }
        let code = begun.code[bytes].to_vec();
        *kept = Some(begun).filter(|begun| begun.code.len() < self.len);
        Ok(code)
    }
}

/// A module in the archive.
pub(crate) struct Module {
    name: &'static str,
    target: &'static str,
    unit: usize,
    bytes: Range<usize>,
}

impl Module {
    /// True for PTX, which the driver must compile.
    pub(crate) fn is_ptx(&self) -> bool {
        self.target == PTX
    }
}

impl Archive {
    /// The archive of this program. It is empty if the build embedded no archive.
    pub(crate) fn embedded() -> &'static Archive {
        static EMBEDDED: OnceLock<Archive> = OnceLock::new();
        const BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kernels.archive"));
        EMBEDDED.get_or_init(|| Archive::parse(BYTES).unwrap_or_default())
    }

    /// Reads an archive from the bytes. Returns `None` if the bytes are not an archive.
    pub(crate) fn parse(bytes: &'static [u8]) -> Option<Archive> {
        let end = bytes.windows(2).position(|two| two == b"\n\n")?;
        let (index, data) = (str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 2..]);
        let mut lines = index.lines();
        if lines.next() != Some(HEAD) {
            return None;
        }
        let mut archive = Archive::default();
        for line in lines {
            let [first, second, third, fourth] = line.split(' ').collect::<Vec<_>>().try_into().ok()?;
            let (third, fourth) = (third.parse().ok()?, fourth.parse().ok()?);
            if first == "unit" {
                let (start, packed, len): (usize, usize, usize) = (second.parse().ok()?, third, fourth);
                if len > LONGEST_UNIT {
                    return None;
                }
                let packed = data.get(start..start.checked_add(packed)?)?;
                archive.units.push(Unit { packed, len, ..Unit::default() });
            } else {
                let unit = archive.units.len().checked_sub(1)?;
                let bytes = third..fourth;
                if bytes.start > bytes.end || bytes.end > archive.units[unit].len {
                    return None;
                }
                archive.modules.push(Module { name: first, target: second, unit, bytes });
            }
        }
        Some(archive)
    }

    /// Returns the best code of a module for an architecture: machine code if there is any, otherwise PTX.
    pub(crate) fn find(&self, name: &str, architecture: Architecture) -> Option<&Module> {
        let of_name = || self.modules.iter().filter(|module| module.name == name);
        let exact = of_name().filter(|module| architecture.runs(module.target));
        // Chooses the newest target that runs. Names are compared by length first, because `sm_100` is newer than `sm_90`
        // but sorts before it.
        let best = exact.max_by_key(|module| (module.target.len(), module.target));
        best.or_else(|| of_name().find(|module| module.is_ptx() && architecture.is_supported()))
    }

    /// The code of a module, in the form that the driver loads: a cubin, or PTX that ends with a zero byte.
    pub(crate) fn unpack(&self, module: &Module) -> Result<Vec<u8>, String> {
        let unit = &self.units[module.unit];
        let damaged = |why: &dyn std::fmt::Display| {
            format!("the machine code of {} in this program is damaged: {why}", module.name)
        };
        let code = unit.code(module.bytes.clone()).map_err(|error| damaged(&error))?;
        // The driver does not receive the length of the code. It would read beyond the end of code that is neither an ELF file nor
        // zero-terminated PTX.
        if !code.starts_with(b"\x7fELF") && code.last() != Some(&0) {
            return Err(damaged(&"it is neither a cubin nor PTX"));
        }
        Ok(code)
    }

    /// Number of bytes that were unpacked so far.
    #[cfg(test)]
    pub(crate) fn unpacked(&self) -> u64 {
        self.units.iter().map(|unit| unit.unpacked.load(Ordering::Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests;
