//! Property messages to the firmware. A message contains a tag and values. The response replaces the message.

use std::io;

use super::{Firmware, SharedMemory};
use crate::chip::BoardError;

/// Tags, as in the documentation of the firmware.
const ALLOCATE: u32 = 0x3000c;
const LOCK: u32 = 0x3000d;
const UNLOCK: u32 = 0x3000e;
const RELEASE: u32 = 0x3000f;
const EXECUTE_QPU: u32 = 0x30011;
const ENABLE_QPU: u32 = 0x30012;

/// The code of a response without errors.
const SUCCESS: u32 = 0x8000_0000;
/// The bit of a tag's length that is set in a response.
const RESPONSE: u32 = 1 << 31;

const UPDATE: &str = "update the firmware, or use another device";
const KERNEL_DRIVER: &str = "the kernel's driver probably owns the QPUs: remove dtoverlay=vc4-kms-v3d or vc4-fkms-v3d from config.txt and restart, or use another device";
const MEMORY: &str = "raise gpu_mem in config.txt and restart";
const RETRY: &str = "try again; if it remains, restart the board";

/// The firmware, accessed through property messages.
pub(super) struct Mailbox {
    firmware: Box<dyn Firmware>,
}

impl Mailbox {
    pub(super) fn new(firmware: Box<dyn Firmware>) -> Mailbox {
        Mailbox { firmware }
    }

    pub(super) fn process(&self) -> u32 {
        self.firmware.process()
    }

    /// Waits until no other process uses the QPUs.
    pub(super) fn acquire(&mut self) -> Result<(), BoardError> {
        self.firmware.acquire().map_err(|error| BoardError {
            reason: format!("cannot lock the mailbox of the firmware: {error}"),
            remedy: RETRY,
        })
    }

    /// Ends the exclusive use, so that other processes can use the QPUs.
    pub(super) fn give_back(&mut self) {
        self.firmware.give_back();
    }

    /// Sends a tag with values. Returns the first value of the response.
    fn request(&mut self, what: &str, tag: u32, values: &[u32]) -> Result<u32, BoardError> {
        let mut message = [0; 16];
        // The words of a message are, in this order: the length of the message, the code of a request, the tag, the length of
        // the space for values, the length of the request, the values, and the end of the message.
        message[0] = 4 * (5 + values.len() as u32 + 1);
        message[2] = tag;
        message[3] = 4 * values.len() as u32;
        message[5..5 + values.len()].copy_from_slice(values);
        let failed =
            |reason: String, remedy| BoardError { reason: format!("cannot {what}: {reason}"), remedy };
        self.firmware.property(&mut message).map_err(|error| match error.kind() {
            // The kernel returns this error if the firmware rejects a message (Linux, `drivers/firmware/raspberrypi.c`).
            io::ErrorKind::InvalidInput => {
                failed(format!("the firmware refuses the message: {error}"), UPDATE)
            }
            _ => failed(format!("the mailbox of the firmware fails: {error}"), RETRY),
        })?;
        if message[1] != SUCCESS {
            return Err(failed(format!("the firmware refuses the message: {:#x}", message[1]), UPDATE));
        }
        if message[4] & RESPONSE == 0 {
            return Err(failed("the firmware does not know the request".into(), UPDATE));
        }
        if message[4] & !RESPONSE < 4 {
            return Err(failed("the firmware's response is too short".into(), UPDATE));
        }
        Ok(message[5])
    }

    /// Sends a tag whose response is zero on success.
    fn command(
        &mut self,
        what: &str,
        tag: u32,
        values: &[u32],
        remedy: &'static str,
    ) -> Result<(), BoardError> {
        match self.request(what, tag, values)? {
            0 => Ok(()),
            code => {
                let reason = format!("cannot {what}: the firmware returns {code:#x}");
                Err(BoardError { reason, remedy })
            }
        }
    }

    /// Allocates memory. Returns its handle.
    pub(super) fn allocate(&mut self, bytes: u32, alignment: u32, flags: u32) -> Result<u32, BoardError> {
        match self.request("allocate memory of the GPU", ALLOCATE, &[bytes, alignment, flags])? {
            0 => {
                let reason = format!("the firmware has not {bytes} bytes of memory for the GPU");
                Err(BoardError { reason, remedy: MEMORY })
            }
            handle => Ok(handle),
        }
    }

    /// Locks memory, and returns its address.
    pub(super) fn lock(&mut self, handle: u32) -> Result<u32, BoardError> {
        match self.request("lock memory of the GPU", LOCK, &[handle])? {
            0 => {
                Err(BoardError { reason: "the firmware cannot lock memory of the GPU".into(), remedy: RETRY })
            }
            address => Ok(address),
        }
    }

    pub(super) fn unlock(&mut self, handle: u32) -> Result<(), BoardError> {
        self.command("unlock memory of the GPU", UNLOCK, &[handle], RETRY)
    }

    pub(super) fn release(&mut self, handle: u32) -> Result<(), BoardError> {
        self.command("free memory of the GPU", RELEASE, &[handle], RETRY)
    }

    /// Maps locked memory, which is at a physical address, into this process.
    pub(super) fn map(&mut self, physical: u32, bytes: usize) -> Result<Box<dyn SharedMemory>, BoardError> {
        self.firmware.map(physical, bytes).map_err(|error| BoardError {
            reason: format!("cannot map memory of the GPU: {error}"),
            remedy: "run the program as root, on a kernel that allows /dev/mem",
        })
    }

    pub(super) fn enable_qpus(&mut self, enabled: bool) -> Result<(), BoardError> {
        let what = if enabled { "switch the QPUs on" } else { "switch the QPUs off" };
        self.command(what, ENABLE_QPU, &[enabled.into()], KERNEL_DRIVER)
    }

    /// Runs the QPUs with the programs of a control list, and waits until they have ended. The firmware clears the caches
    /// before the run.
    pub(super) fn execute(&mut self, qpus: u32, control: u32, timeout_ms: u32) -> Result<(), BoardError> {
        self.command("run the QPUs", EXECUTE_QPU, &[qpus, control, 0, timeout_ms], RETRY)
    }
}
