
use super::*;

#[test]
fn selectors_are_printed_as_written() {
    for name in ["cpu", "cuda:0", "cuda:0,1", "cuda:all", "wgpu:software", "spu:04", "cuda:", ""] {
        assert_eq!(DeviceSelector::from(name).to_string(), name);
    }
    assert_eq!(KernelName::from("cpu/vaes512").to_string(), "cpu/vaes512");
}

#[test]
fn vulkan_is_an_alias_of_wgpu() {
    for (name, expected) in [
        ("vulkan:0", "wgpu:0"),
        ("vulkan:software", "wgpu:software"),
        ("vulkan", "wgpu"),
        ("vulkanic:0", "vulkanic:0"),
        ("cuda:0", "cuda:0"),
    ] {
        assert_eq!(DeviceSelector::from(name).to_string(), expected);
    }
    for (name, expected) in [("vulkan/bitslice", "wgpu/bitslice"), ("vulkan", "wgpu"), ("cpu/a", "cpu/a")] {
        assert_eq!(KernelName::from(name).to_string(), expected);
    }
}

#[test]
fn selectors_name_devices() {
    let id = |unit| DeviceId { backend: "spu", unit };
    assert!(DeviceSelector::from("spu:4") == id(Unit::Number(4)));
    assert!(DeviceSelector::from("spu:04") != id(Unit::Number(4)));
    assert!(DeviceSelector::from("spu") == id(Unit::Only));
    assert!(DeviceSelector::from("spu:emu") == id(Unit::Named("emu")));
    assert_eq!(
        ["spu:4", "spu:04", "spu:x", "spu"].map(|name| DeviceSelector::from(name).number()),
        [Some(4), None, None, None]
    );
    let each = |name| DeviceSelector::from(name).each().map(|one| one.to_string()).collect::<Vec<_>>();
    assert_eq!(each("cuda:0,1"), ["cuda:0", "cuda:1"]);
    assert_eq!(each("cuda:0,"), ["cuda:0", "cuda:"]);
    assert!(each("cuda").is_empty());
    assert!(DeviceSelector::from("cuda:all").is_all());
}
