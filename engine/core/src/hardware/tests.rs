
use super::*;

const NVIDIA: u32 = 0x10de;

#[test]
fn addresses_decide_where_both_are_known() {
    let cuda = HardwareId::new(NVIDIA, "NVIDIA H100 PCIe", "0000:01:00.0");
    assert!(cuda.is_same(&HardwareId::new(0, "whatever", "00000000:01:00.0")));
    assert!(!cuda.is_same(&HardwareId::new(NVIDIA, "NVIDIA H100 PCIe", "0000:02:00.0")));
}

#[test]
fn without_an_address_vendor_and_model_decide() {
    let cuda = HardwareId::new(NVIDIA, "NVIDIA H100 PCIe", "0000:01:00.0");
    for address in ["", "nonsense", "1:2:3:4.5", "01:00.0"] {
        assert!(cuda.is_same(&HardwareId::new(NVIDIA, "NVIDIA H100 PCIe", address)), "{address}");
    }
    assert!(cuda.is_same(&HardwareId::new(0, "NVIDIA H100 PCIe/PCIe/SSE2", "")));
    assert!(!cuda.is_same(&HardwareId::new(0x1002, "NVIDIA H100 PCIe", "")));
    assert!(!cuda.is_same(&HardwareId::new(NVIDIA, "NVIDIA H200", "")));
    assert!(!HardwareId::new(0, "", "").is_same(&HardwareId::new(0, "", "")));
    let radeon = |name| HardwareId::new(0, name, "");
    assert!(radeon("AMD Radeon RX 6800 (RADV NAVI21)").is_same(&radeon("AMD Radeon RX 6800")));
}
