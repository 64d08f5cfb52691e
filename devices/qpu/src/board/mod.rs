//! The QPUs of a board, Raspberry Pi 1 to 3, used through the mailbox of the firmware.
//!
//! The messages are described in the firmware's documentation, *Mailbox property interface*. This code has not yet run on a
//! board. The tests use a firmware that runs the simulator.

mod conditions;
mod firmware;
#[cfg(target_os = "linux")]
mod linux;
mod mailbox;

use std::path::Path;

use lockstep_core::backend::Missing;

pub use self::conditions::{Model, check};
pub use self::firmware::{Firmware, SharedMemory};
use self::mailbox::Mailbox;
use crate::chip::{BoardError, Chip, ChipError, ProgramRun};
use crate::sim::{QPUS, Run};

/// Milliseconds after which the firmware ends a run. The firmware must respond before the timeout of the kernel, which is one
/// second (Linux, `drivers/firmware/raspberrypi.c`). Otherwise the run continues, and its end cannot be detected. The longest
/// run of the device, the thesis's decryption with a key of 256 bits, takes 0.15 s according to the simulator.
const TIMEOUT_MS: u32 = 900;

/// Bytes of a page. The memory of the GPU is aligned to pages.
const PAGE: usize = 4096;

/// Offsets in the memory of the GPU. The control list is at offset 0. For each QPU, it contains the address of the uniforms and
/// the address of the program.
const CONTROL: usize = 0;
const PROGRAM: usize = PAGE;
/// Maximum number of bytes of a program. The published decryption has about 5 KiB.
const PROGRAM_BYTES: usize = 4 * PAGE;
const DATA: usize = PROGRAM + PROGRAM_BYTES;

/// The memory of the GPU that a board uses.
struct Allocation {
    handle: u32,
    /// The address that QPUs use.
    bus: u32,
    shared: Box<dyn SharedMemory>,
    /// Number of bytes for data, which start at the offset [`DATA`].
    data: usize,
    /// True from the start of a run until the firmware reports its success. During this time QPUs may read and write the
    /// memory.
    is_in_use: bool,
    /// The process that allocated the memory.
    process: u32,
}

/// The QPUs of a board. Between [`Chip::reserve`] and [`Chip::finish`] the board holds memory of the GPU, the QPUs are switched
/// on, and other processes wait.
///
/// Memory with keys and data remains allocated in two cases: the process is killed during a run, or a run fails and the
/// firmware also fails to switch the QPUs off. In the second case QPUs may still write to the memory. Therefore the memory is
/// neither wiped nor freed, and the board returns errors for further runs until the QPUs can be switched off.
pub struct Board {
    mailbox: Mailbox,
    model: Model,
    memory: Option<Allocation>,
}

impl Board {
    /// Opens the QPUs of the board on which this program runs.
    ///
    /// # Errors
    /// [`Missing`] if the board is not a Raspberry Pi 1 to 3, if the kernel's driver owns the QPUs, or if this
    /// process has no access.
    pub fn open() -> Result<Board, Missing> {
        let model = check(Path::new("/"))?;
        #[cfg(target_os = "linux")]
        return Ok(Board::new(Box::new(linux::Vcio::open()?), model));
        #[cfg(not(target_os = "linux"))]
        unreachable!("the check needs files of Linux: {model:?}")
    }

    /// A board with the given firmware.
    pub fn new(firmware: Box<dyn Firmware>, model: Model) -> Board {
        Board { mailbox: Mailbox::new(firmware), model, memory: None }
    }

    /// The chip of the board, which determines the addresses of its memory.
    pub fn model(&self) -> Model {
        self.model
    }

    /// Acquires the QPUs, and allocates memory for `data` bytes of data.
    fn start(&mut self, data: usize) -> Result<Allocation, BoardError> {
        self.mailbox.acquire()?;
        let started = self.mailbox.enable_qpus(true).and_then(|()| {
            let allocated = self.allocate(data);
            if allocated.is_err() {
                // An error here is ignored, because the first error is reported. The same applies below.
                let _ = self.mailbox.enable_qpus(false);
            }
            allocated
        });
        if started.is_err() {
            self.mailbox.give_back();
        }
        started
    }

    fn allocate(&mut self, data: usize) -> Result<Allocation, BoardError> {
        let bytes = DATA + data;
        let handle = self.mailbox.allocate(bytes as u32, PAGE as u32, self.model.memory_flags())?;
        let locked = self.mailbox.lock(handle).and_then(|bus| {
            let mapped = self
                .model
                .physical_address(bus, bytes)
                .and_then(|physical| self.mailbox.map(physical, bytes));
            if mapped.is_err() {
                let _ = self.mailbox.unlock(handle);
            }
            let process = self.mailbox.process();
            Ok(Allocation { handle, bus, shared: mapped?, data, is_in_use: false, process })
        });
        if locked.is_err() {
            let _ = self.mailbox.release(handle);
        }
        locked
    }

    /// Switches the QPUs off, wipes and frees the memory, and lets other processes continue.
    ///
    /// # Errors
    /// Fails if the QPUs may be running a program and cannot be switched off. The memory and the lock are then kept.
    fn stop(&mut self) -> Result<(), BoardError> {
        let Some(mut memory) = self.memory.take() else { return Ok(()) };
        if memory.process != self.mailbox.process() {
            // This is a child process, and its parent is in a call. The parent itself ends the call.
            return Ok(());
        }
        // The QPUs are switched off first, because the memory must be neither wiped nor freed while QPUs may use it.
        if let Err(error) = self.mailbox.enable_qpus(false)
            && memory.is_in_use
        {
            self.memory = Some(memory);
            return Err(error);
        }
        memory.shared.wipe(0, DATA + memory.data);
        drop(memory.shared);
        // If the firmware rejects these requests, the memory remains allocated, but it has already been wiped.
        let _ = self.mailbox.unlock(memory.handle);
        let _ = self.mailbox.release(memory.handle);
        self.mailbox.give_back();
        Ok(())
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        if self.stop().is_err() {
            self.mailbox.give_back();
        }
    }
}

impl Chip for Board {
    fn reserve(&mut self, bytes: usize) -> Result<u32, ChipError> {
        let bytes = bytes.next_multiple_of(PAGE);
        let memory = match self.memory.take() {
            Some(memory)
                if memory.data >= bytes && !memory.is_in_use && memory.process == self.mailbox.process() =>
            {
                memory
            }
            before => {
                self.memory = before;
                self.stop()?;
                self.start(bytes)?
            }
        };
        Ok(self.memory.insert(memory).bus + DATA as u32)
    }

    fn run(&mut self, run: ProgramRun<'_>) -> Result<Run, ChipError> {
        let memory = self.memory.as_mut().expect("memory was reserved for the run");
        let program: Vec<u8> = run.program.words().flat_map(u64::to_le_bytes).collect();
        assert!(program.len() <= PROGRAM_BYTES, "a program of {} bytes", program.len());
        assert!(run.memory.len() <= memory.data && run.uniforms.len() <= usize::from(QPUS));
        assert!(!memory.is_in_use, "the memory was reserved again after a failure");
        let control = run.uniforms.iter().flat_map(|uniforms| [*uniforms, memory.bus + PROGRAM as u32]);
        let control: Vec<u8> = control.flat_map(u32::to_le_bytes).collect();
        memory.shared.write(CONTROL, &control);
        memory.shared.write(PROGRAM, &program);
        memory.shared.write(DATA, run.memory);
        let qpus = run.uniforms.len() as u32;
        memory.is_in_use = true;
        if let Err(error) = self.mailbox.execute(qpus, memory.bus + CONTROL as u32, TIMEOUT_MS) {
            // After a timeout, the program may still be running. Switching the QPUs off ends the program. If this fails, the
            // next run tries again to switch them off.
            let _ = self.stop();
            return Err(error.into());
        }
        memory.is_in_use = false;
        // The output is read in whole words.
        let output = run.output.start & !3..run.output.end.next_multiple_of(4);
        memory.shared.read(DATA + output.start, &mut run.memory[output]);
        memory.shared.wipe(DATA, run.memory.len());
        Ok(Run { interrupts: 1, ..Run::default() })
    }

    fn finish(&mut self) {
        // If the QPUs cannot be switched off, the next run reports the failure.
        let _ = self.stop();
    }
}
