//! The identity of the hardware behind a device, which shows whether two backends use the same GPU.

/// A processor on a bus, identified independently of the programming interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HardwareId {
    /// The PCI vendor number, such as 0x10de for NVIDIA; 0 if it is unknown.
    vendor: u32,
    /// The model's name in lower case, without the vendor's name and without additions by drivers.
    model: String,
    pci: Option<PciAddress>,
}

/// Domain, bus, device and function.
type PciAddress = (u32, u8, u8, u8);

impl HardwareId {
    /// Identifies hardware by the PCI vendor number (0 if unknown), the model's name as the driver reports it, and the PCI
    /// address. The address has the form `domain:bus:device.function` in hexadecimal digits. An empty or malformed address
    /// counts as unknown.
    pub fn new(vendor: u32, model: &str, pci: &str) -> HardwareId {
        HardwareId { vendor, model: plain_model(model), pci: parse_pci(pci) }
    }

    /// True if both have the same PCI address. If one of the addresses is unknown, vendor and model are compared instead.
    pub fn is_same(&self, other: &HardwareId) -> bool {
        if let (Some(one), Some(other)) = (self.pci, other.pci) {
            return one == other;
        }
        let vendors_agree = self.vendor == 0 || other.vendor == 0 || self.vendor == other.vendor;
        vendors_agree && !self.model.is_empty() && self.model == other.model
    }
}

/// `NVIDIA H100 PCIe`, `NVIDIA H100 PCIe/PCIe/SSE2` (OpenGL) and `H100 PCIe` are one model, as are `AMD Radeon RX 6800` and
/// `AMD Radeon RX 6800 (RADV NAVI21)`.
fn plain_model(name: &str) -> String {
    let name = name.to_lowercase();
    let name = name.split(['/', '(']).next().unwrap_or_default().trim();
    let vendors = ["nvidia ", "amd ", "intel "];
    vendors.iter().find_map(|vendor| name.strip_prefix(vendor)).unwrap_or(name).trim().into()
}

fn parse_pci(text: &str) -> Option<PciAddress> {
    let (rest, function) = text.split_once('.')?;
    let mut numbers = rest.split(':');
    let domain = u32::from_str_radix(numbers.next()?, 16).ok()?;
    let mut byte = || u8::from_str_radix(numbers.next()?, 16).ok();
    let (bus, device) = (byte()?, byte()?);
    numbers.next().is_none().then_some((domain, bus, device, u8::from_str_radix(function, 16).ok()?))
}

#[cfg(test)]
mod tests;
