//! Calls of functions of the harness with buffers as arguments, and the checks after each call.

use std::rc::Rc;

use crate::cases::Kernel;
use crate::machine::{Finding, Kind, Machine, Program, Stop};
use crate::memory::{Region, Role};
use crate::random::Random;
use crate::taint::{Taint, Tainted};
use crate::value::Domain;

/// The address of the first buffer.
const BUFFERS: u64 = 0x7c00_0000_0000;
/// Number of bytes between the addresses of two buffers.
const SPACING: u64 = 1 << 20;

/// A buffer of the caller. The number of the buffer determines its address. The address is odd if the number is 16 or
/// more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffer(pub u64);

impl Buffer {
    /// The address of the first byte.
    pub fn address(self) -> u64 {
        // Structures of the harness have pointers, which are aligned to 8 bytes; data have any alignment.
        let offset = if self.0 < 16 { 0 } else { 1 + 2 * (self.0 % 16) };
        BUFFERS + self.0 * SPACING + offset
    }
}

/// A machine in which the harness has made a kernel, and the public results of the next call.
#[derive(Clone)]
pub struct Session<D: Domain = Taint> {
    /// The machine that executes the functions of the harness.
    pub machine: Machine<D>,
    /// The address of the `InlineKernel` that the harness has made.
    pub kernel: u64,
    /// Public results: the ciphertext and, when sealing, the tag. A function may leave them in registers and on the stack. The list is
    /// empty for a function that encrypts and decrypts by the same code, whose output may be plaintext.
    pub results: Vec<Vec<u8>>,
    /// The seed of the program, see [`Program::seed`].
    pub seed: u64,
}

impl<D: Domain> Session<D> {
    /// A machine in which the harness has made a kernel.
    ///
    /// # Errors
    /// If the kernel cannot be made.
    pub fn new(program: &Rc<Program<D>>, kernel: Kernel) -> Result<Self, Stop> {
        let mut session = Session {
            machine: Machine::new(Rc::clone(program)),
            kernel: 0,
            results: Vec::new(),
            seed: program.seed,
        };
        let name = session.public(Buffer(0), kernel.name.as_bytes(), false);
        let width = kernel.width.map_or(u64::MAX, |(width, _)| width);
        session.kernel = session.machine.call("proof_kernel", &[name, kernel.name.len() as u64, width])?;
        if session.kernel == 0 {
            return Err(session.machine.stop(format!("there is no kernel {kernel}")));
        }
        session.remove(Buffer(0));
        session.machine.steps = 0;
        Ok(session)
    }

    /// Pseudo-random bytes of a key, of data or of another input, which has this number.
    pub(crate) fn sample(&self, len: usize, number: u64) -> Vec<u8> {
        let mut random = Random(number << 32 | self.seed);
        let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| random.next().to_le_bytes()).collect();
        bytes.truncate(len);
        bytes
    }

    /// Adds a buffer, and returns its address.
    pub fn buffer(&mut self, buffer: Buffer, bytes: Vec<D::Byte>, is_writable: bool) -> u64 {
        self.remove(buffer);
        let name = format!("buffer {} of {} bytes", buffer.0, bytes.len());
        let region = Region::new(&name, Role::Buffer, buffer.address(), is_writable, bytes);
        self.machine.memory.add(region);
        buffer.address()
    }

    /// Adds a buffer of public bytes.
    pub fn public(&mut self, buffer: Buffer, bytes: &[u8], is_writable: bool) -> u64 {
        self.buffer(buffer, self.publics(bytes), is_writable)
    }

    /// Adds a structure of public numbers of 8 bytes.
    pub fn structure(&mut self, buffer: Buffer, numbers: &[u64]) -> u64 {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.public(buffer, &bytes, true)
    }

    /// Removes a buffer.
    pub fn remove(&mut self, buffer: Buffer) {
        self.machine.memory.remove(buffer.address());
    }

    /// Bytes without a secret.
    pub fn publics(&self, bytes: &[u8]) -> Vec<D::Byte> {
        bytes.iter().map(|byte| D::constant(*byte)).collect()
    }

    /// Adds the buffers for the input and the output of a call: one buffer if the call works in place, otherwise two
    /// buffers. Returns the addresses of the input and of the output.
    pub fn data(&mut self, input: Buffer, output: Buffer, bytes: &[D::Byte], in_place: bool) -> (u64, u64) {
        if in_place {
            let address = self.buffer(output, bytes.to_vec(), true);
            return (address, address);
        }
        let from = self.buffer(input, bytes.to_vec(), false);
        (from, self.public(output, &vec![0xee; bytes.len()], true))
    }

    /// Calls a function, searches for secrets that it leaves behind, and returns the value of RAX. This value is public: an address, or a
    /// verdict.
    ///
    /// # Errors
    /// If the run cannot go on.
    pub fn call(&mut self, function: &str, arguments: &[u64]) -> Result<u64, Stop> {
        self.machine.clear_scratch();
        let result = self.machine.call(function, arguments)?;
        let results: Vec<&[u8]> = self.results.iter().map(Vec::as_slice).collect();
        self.machine.find_left(&results);
        Ok(result)
    }

    /// Calls a function whose result is the address of a new object, or a bool that is true.
    ///
    /// # Errors
    /// If the run cannot go on, or if the result is zero.
    pub fn call_well(&mut self, function: &str, arguments: &[u64]) -> Result<u64, Stop> {
        let result = self.call(function, arguments)?;
        self.not_zero(function, result)
    }

    fn not_zero(&self, function: &str, result: u64) -> Result<u64, Stop> {
        // A bool has 8 bits. The other bits of the register are undefined.
        let size = if result < 1 << 32 { 1 } else { 8 };
        if self.is_result_changed(size) || result & 0xff == 0 && size == 1 {
            return Err(self.machine.stop(format!("{function} reports a failure")));
        }
        Ok(result)
    }

    /// True if the run shows the effect of a change of the program, and the lowest `size` bytes of the result of a function depend
    /// on the change.
    fn is_result_changed(&self, size: usize) -> bool {
        let result = self.machine.register(iced_x86::Register::RAX);
        self.machine.follows_change() && result[..size].iter().any(|byte| D::secret(*byte) != 0)
    }

    /// The bytes of a buffer.
    pub fn bytes(&self, buffer: Buffer) -> &[D::Byte] {
        self.machine.memory.region(buffer.address()).map_or(&[], Region::bytes)
    }
}

impl Session {
    /// Secret bytes. In runs that show the effect of a change, nothing is secret.
    pub fn secrets(&self, bytes: &[u8]) -> Vec<Tainted> {
        let follows_change = self.machine.follows_change();
        let secret = |byte: &u8| if follows_change { Taint::constant(*byte) } else { Tainted::secret(*byte) };
        bytes.iter().map(secret).collect()
    }

    /// Adds a buffer of secret bytes.
    pub fn secret(&mut self, buffer: Buffer, bytes: &[u8], is_writable: bool) -> u64 {
        self.buffer(buffer, self.secrets(bytes), is_writable)
    }

    /// The values of the bytes of a buffer.
    pub fn values(&self, buffer: Buffer) -> Vec<u8> {
        self.bytes(buffer).iter().map(|byte| Taint::value(*byte)).collect()
    }

    /// Checks that each byte of a buffer has been written, and that it has the right value.
    pub fn check(&mut self, buffer: Buffer, what: &str, expected: &[u8]) {
        let region = self.machine.memory.region(buffer.address());
        let unwritten =
            region.map_or(0, |region| region.writers().iter().filter(|writer| **writer == 0).count());
        if unwritten > 0 {
            self.found(Kind::Output, format!("bytes of {what} have not been written"));
        }
        self.check_values(buffer, what, expected);
    }

    /// Compares the values of a buffer with the expected ones. The call need not write all bytes of the buffer.
    pub fn check_values(&mut self, buffer: Buffer, what: &str, expected: &[u8]) {
        let is_changed =
            self.machine.follows_change() && self.bytes(buffer).iter().any(|byte| Taint::secret(*byte) != 0);
        if is_changed || self.values(buffer) != expected {
            self.found(Kind::Result, format!("{what} differs from that of the reference implementation"));
        }
    }

    /// Adds a finding that no single instruction causes.
    pub fn found(&mut self, kind: Kind, detail: String) {
        let function = "the function that was called".to_string();
        *self.machine.findings.entry(Finding { kind, function, bytes: 0, depth: 0, detail }).or_default() +=
            1;
    }

    /// Checks the verdict on a task or a tag, which the last call has returned.
    pub fn check_verdict(&mut self, verdict: bool, expected: bool) {
        if verdict != expected || self.is_result_changed(1) {
            let detail = if expected { "a right message is refused" } else { "a wrong tag is accepted" };
            self.found(Kind::Result, detail.into());
        }
    }

    /// Checks that no block of the allocator holds a secret, after everything has been dropped.
    pub fn check_heap(&mut self) {
        if self.machine.follows_change() {
            return;
        }
        let secret = |region: &&Region<Taint>| region.bytes().iter().any(|byte| Taint::secret(*byte) != 0);
        let blocks = self.machine.memory.regions().iter().filter(|region| region.role == Role::Heap);
        let count = blocks.filter(secret).count();
        if count > 0 {
            self.found(Kind::Heap, format!("{count} blocks with secrets have not been freed"));
        }
    }
}
