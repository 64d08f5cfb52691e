//! The effects of imported functions, as the C standard and POSIX define them.
//!
//! The following is assumed of the C library: It conforms to these standards. The time of its functions for copying, setting and
//! allocating memory depends on lengths and addresses only. These functions leave no copy of the copied bytes in registers or on the
//! stack.

use crate::machine::{Finding, Flags, Kind, Machine, Step, Stop};
use crate::memory::{Region, Role};
use crate::value::Domain;

/// The largest number of bytes of one call. No run needs more.
const MAX_BYTES: u64 = 1 << 24;

/// The address of the first block of the allocator.
const HEAP: u64 = 0x7d00_0000_0000;
/// Number of bytes between two blocks, so that an access past the end of a block is found.
const GAP: u64 = 4096;

/// Answers a call of the imported function at the current address, and returns to the caller.
///
/// # Errors
/// If the function has no contract, or if the run cannot go on.
pub fn answer<D: Domain>(m: &mut Machine<D>) -> Step {
    let Some(name) = m.image().imports.get(&m.at()).cloned() else {
        return Err(m.stop(format!("a jump to {:#x}, where there is no code", m.at())));
    };
    let result = match name.as_str() {
        "memcpy" | "memmove" => copy(m)?,
        "memset" => fill(m)?,
        "malloc" => {
            let size = argument(m, 0)?;
            allocate(m, size, 16, None)?
        }
        "calloc" => {
            let size = argument(m, 0)? * argument(m, 1)?;
            allocate(m, size, 16, Some(D::constant(0)))?
        }
        "aligned_alloc" => {
            let (alignment, size) = (argument(m, 0)?, argument(m, 1)?);
            allocate(m, size, alignment, None)?
        }
        "posix_memalign" => {
            let (place, alignment, size) = (argument(m, 0)?, argument(m, 1)?, argument(m, 2)?);
            let block = allocate(m, size, alignment, None)?;
            m.store(place, &block.to_le_bytes().map(D::constant))?;
            0
        }
        "realloc" => reallocate(m)?,
        "free" => {
            let block = argument(m, 0)?;
            free(m, block)?;
            return return_to_caller(m, None);
        }
        "bcmp" | "memcmp" => compare(m)?,
        // The bits of all features are set, as for CPUID of x86-64.
        "getauxval" => u64::MAX,
        _ => return Err(m.stop("this imported function has no contract")),
    };
    return_to_caller(m, Some(result))
}

/// Returns to the caller, with the result in its register if there is one.
fn return_to_caller<D: Domain>(m: &mut Machine<D>, result: Option<u64>) -> Step {
    m.next = m.leave()?;
    clobber_scratch_registers(m);
    if let Some(result) = result {
        m.set_general_number(0, result.to_le_bytes().map(D::constant));
    }
    Ok(())
}

/// An argument that is visible from outside: an address or a length.
fn argument<D: Domain>(m: &mut Machine<D>, index: usize) -> Result<u64, Stop> {
    let bytes = m.general_number(m.convention().arguments[index]);
    m.public(Kind::Address, "address or length", &bytes)
}

/// An argument that is a number of bytes. A changed instruction may pass a length for which this process cannot allocate memory.
fn length<D: Domain>(m: &mut Machine<D>, index: usize) -> Result<u64, Stop> {
    match argument(m, index)? {
        length @ 0..=MAX_BYTES => Ok(length),
        length => Err(m.stop(format!("a call for {length} bytes"))),
    }
}

/// Models the end of a call. The registers that a function need not preserve get other values, and the flags are undefined. Secret bytes
/// of these registers may survive the call, so the other values of these bytes are secret too. Vector registers do not change.
fn clobber_scratch_registers<D: Domain>(m: &mut Machine<D>) {
    m.flags = Flags::UNDEFINED;
    for number in m.convention().scratch {
        let before = m.general_number(*number);
        let unknown = before.map(|byte| {
            let other = D::constant(0xa5);
            if D::secret(byte) == 0 { other } else { m.domain.xor(byte, other) }
        });
        m.set_general_number(*number, unknown);
    }
}

fn copy<D: Domain>(m: &mut Machine<D>) -> Result<u64, Stop> {
    let (to, from, len) = (argument(m, 0)?, argument(m, 1)?, length(m, 2)?);
    let mut bytes = vec![D::constant(0); len as usize];
    if len > 0 {
        m.memory.read(from, &mut bytes).map_err(|denied| m.deny(&denied))?;
        m.store(to, &bytes)?;
    }
    Ok(to)
}

fn fill<D: Domain>(m: &mut Machine<D>) -> Result<u64, Stop> {
    let (to, len) = (argument(m, 0)?, length(m, 2)?);
    let byte = m.general_number(m.convention().arguments[1])[0];
    if len > 0 {
        m.store(to, &vec![byte; len as usize])?;
    }
    Ok(to)
}

/// Compares public bytes. They must be public because the time of the C library's comparison depends on the bytes.
fn compare<D: Domain>(m: &mut Machine<D>) -> Result<u64, Stop> {
    let (x, y, len) = (argument(m, 0)?, argument(m, 1)?, argument(m, 2)?);
    for index in 0..len {
        let (a, b) = (m.load(x + index, 1)?, m.load(y + index, 1)?);
        let (a, b) =
            (m.public(Kind::Time, "comparison", &a[..1])?, m.public(Kind::Time, "comparison", &b[..1])?);
        if a != b {
            return Ok(if a < b { u64::MAX } else { 1 });
        }
    }
    Ok(0)
}

fn allocate<D: Domain>(
    m: &mut Machine<D>,
    size: u64,
    alignment: u64,
    content: Option<D::Byte>,
) -> Result<u64, Stop> {
    if size > MAX_BYTES {
        return Err(m.stop(format!("an allocation of {size} bytes")));
    }
    let base = (HEAP + m.heap_used).next_multiple_of(alignment.max(16));
    m.heap_used = base + size + GAP - HEAP;
    let bytes = vec![content.unwrap_or(D::constant(0xa5)); size as usize];
    let number = m.heap_used;
    m.memory.add(Region::new(&format!("block {number:#x} of {size} bytes"), Role::Heap, base, true, bytes));
    Ok(base)
}

/// Allocates a block of another size, moves the content of a block to it, and frees the old block.
fn reallocate<D: Domain>(m: &mut Machine<D>) -> Result<u64, Stop> {
    let (old, size) = (argument(m, 0)?, argument(m, 1)?);
    let new = allocate(m, size, 16, None)?;
    let content = m.memory.region(old).map(|region| region.bytes().to_vec());
    let mut content = content.ok_or_else(|| m.stop(format!("{old:#x} is no block")))?;
    content.truncate(size as usize);
    m.store(new, &content)?;
    free(m, old)?;
    Ok(new)
}

fn free<D: Domain>(m: &mut Machine<D>, address: u64) -> Step {
    if address == 0 {
        return Ok(());
    }
    let Some(block) = m.memory.remove(address).filter(|region| region.role == Role::Heap) else {
        return Err(m.stop(format!("{address:#x} is freed, which is no block")));
    };
    let secret = block.bytes().iter().position(|byte| D::secret(*byte) != 0);
    if let Some(place) = secret.filter(|_| !m.follows_change()) {
        let count = block.bytes().iter().filter(|byte| D::secret(**byte) != 0).count();
        let writer = u64::from(block.writers()[place]);
        let size = block.bytes().len();
        let detail = format!("{count} of {size} bytes, written at {}", m.image().place(writer));
        let function = m.image().function_at(writer);
        *m.findings
            .entry(Finding { kind: Kind::Heap, function, bytes: count, depth: 0, detail })
            .or_default() += 1;
    }
    Ok(())
}
