//! Whether this machine has QPUs that a program can use.

use std::fs;
use std::path::Path;

use lockstep_core::backend::Missing;

use super::PAGE;
use crate::chip::BoardError;

/// Boards by their chip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// BCM2835: Raspberry Pi 1, Zero, Zero W.
    Bcm2835,
    /// BCM2836: Raspberry Pi 2.
    Bcm2836,
    /// BCM2837: Raspberry Pi 2 (version 1.2), 3, Zero 2 W.
    Bcm2837,
}

impl Model {
    /// The chip and boards that have it.
    pub fn description(self) -> &'static str {
        match self {
            Model::Bcm2835 => "BCM2835 (Raspberry Pi 1 or Zero)",
            Model::Bcm2836 => "BCM2836 (Raspberry Pi 2)",
            Model::Bcm2837 => "BCM2837 (Raspberry Pi 3)",
        }
    }

    /// Flags of memory that QPUs and the processor see alike. The processor of the BCM2835 uses the GPU's cache of level 2, the
    /// others do not: their memory is accessed directly.
    pub(super) fn memory_flags(self) -> u32 {
        const DIRECT: u32 = 1 << 2;
        const COHERENT: u32 = 2 << 2;
        match self {
            Model::Bcm2835 => DIRECT | COHERENT,
            Model::Bcm2836 | Model::Bcm2837 => DIRECT,
        }
    }
}

/// Bus addresses have the mode of the caches in their two highest bits; the others are the physical address.
const PHYSICAL: u32 = 0x3fff_ffff;

impl Model {
    /// The physical address of memory of the GPU that the firmware has locked at a bus address.
    ///
    /// # Errors
    /// The memory is not within the board's, at whole pages. It must not be mapped: keys would be written to the memory of
    /// something else, or to registers of a device.
    pub(super) fn physical_address(self, bus: u32, bytes: usize) -> Result<u32, BoardError> {
        // Where the registers of the chip's devices begin, after the memory.
        let end = match self {
            Model::Bcm2835 => 0x2000_0000,
            Model::Bcm2836 | Model::Bcm2837 => 0x3f00_0000,
        };
        let physical = bus & PHYSICAL;
        let is_within = physical != 0 && u64::from(physical) + bytes as u64 <= end;
        if is_within && physical.is_multiple_of(PAGE as u32) {
            return Ok(physical);
        }
        Err(BoardError {
            reason: format!("the firmware locks {bytes} bytes at {bus:#x}, which is no memory of the GPU"),
            remedy: "update the firmware, or use another device",
        })
    }
}

/// The device of the firmware's mailbox.
pub(super) const MAILBOX: &str = "dev/vcio";
/// Its driver in the kernel, with a link for each device that it owns.
const DRIVER: &str = "sys/bus/platform/drivers/vc4_v3d";
const COMPATIBLE: &str = "proc/device-tree/compatible";

const ANOTHER: &str = "use another device";

/// Checks the conditions by files below a folder, which is `/` but in tests.
///
/// # Errors
/// [`Missing`] with the first condition that is not met.
pub fn check(root: &Path) -> Result<Model, Missing> {
    let missing = |reason: &str, remedy: &str| Missing { reason: reason.into(), remedy: remedy.into() };
    let compatible = fs::read(root.join(COMPATIBLE)).unwrap_or_default();
    let is = |chip: &str| {
        let mut names = compatible.split(|byte| *byte == 0);
        names.any(|name| name == format!("brcm,{chip}").as_bytes())
    };
    if is("bcm2711") || is("bcm2712") {
        return Err(missing(
            "the GPU of a Raspberry Pi 4 or 5 has other QPUs",
            "use its Vulkan driver, by the device wgpu:0",
        ));
    }
    // A chip is also compatible with the ones before it.
    let model = [("bcm2837", Model::Bcm2837), ("bcm2836", Model::Bcm2836), ("bcm2835", Model::Bcm2835)];
    let Some((_, model)) = model.into_iter().find(|(chip, _)| is(chip)) else {
        return Err(missing("this machine is no Raspberry Pi 1 to 3 with Linux", ANOTHER));
    };
    let is_owned = fs::read_dir(root.join(DRIVER)).is_ok_and(|entries| {
        entries.flatten().any(|entry| entry.file_name().to_string_lossy().ends_with(".v3d"))
    });
    if is_owned {
        return Err(missing(
            "the kernel's driver vc4 owns the QPUs",
            "remove dtoverlay=vc4-kms-v3d or vc4-fkms-v3d from config.txt and restart, or use another device",
        ));
    }
    if !root.join(MAILBOX).exists() {
        return Err(missing(
            "there is no /dev/vcio, the mailbox of the firmware",
            "use the kernel of Raspberry Pi OS",
        ));
    }
    Ok(model)
}
