//! The conditions under which a program on this machine can use its QPUs.

use std::fs;
use std::path::Path;

use lockstep_core::backend::Missing;

use super::PAGE;
use crate::chip::BoardError;

/// The chips of Raspberry Pis with QPUs.
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
    /// The chip, and the boards with this chip.
    pub fn description(self) -> &'static str {
        match self {
            Model::Bcm2835 => "BCM2835 (Raspberry Pi 1 or Zero)",
            Model::Bcm2836 => "BCM2836 (Raspberry Pi 2)",
            Model::Bcm2837 => "BCM2837 (Raspberry Pi 3)",
        }
    }

    /// The flags for memory that both the QPUs and the processor access. The processor of the BCM2835 uses the level 2 cache of
    /// the GPU. The processors of the other two chips do not use this cache, so they access the memory directly.
    pub(super) fn memory_flags(self) -> u32 {
        const DIRECT: u32 = 1 << 2;
        const COHERENT: u32 = 2 << 2;
        match self {
            Model::Bcm2835 => DIRECT | COHERENT,
            Model::Bcm2836 | Model::Bcm2837 => DIRECT,
        }
    }
}

/// The two highest bits of a bus address state the use of the caches. All lower bits are the physical address.
const PHYSICAL: u32 = 0x3fff_ffff;

impl Model {
    /// Returns the physical address of memory of the GPU that the firmware has locked at a bus address.
    ///
    /// # Errors
    /// Fails if the range is not within the memory of the board, or does not start at a page. Such a range must not be mapped,
    /// because keys would be written to memory with another use, or to registers of a device.
    pub(super) fn physical_address(self, bus: u32, bytes: usize) -> Result<u32, BoardError> {
        // The first address after the memory, at which the registers of the chip's devices begin.
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

/// The device file of the firmware's mailbox.
pub(super) const MAILBOX: &str = "dev/vcio";
/// The folder of the kernel's driver for the QPUs. It contains a link for each device that the driver owns.
const DRIVER: &str = "sys/bus/platform/drivers/vc4_v3d";
const COMPATIBLE: &str = "proc/device-tree/compatible";

const ANOTHER: &str = "use another device";

/// Checks the conditions with the files below the folder `root`, which is `/` except in tests.
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
    // The list of a newer chip also contains the names of older chips, so the newest chip is tested first.
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
