
use super::*;
use crate::software;

/// A device that was opened without the feature for pipeline caches refuses to create a cache.
#[test]
fn a_device_works_without_a_cache() {
    let Some(software) = software::device() else { return };
    let required_limits = wgpu::Limits::downlevel_defaults();
    let descriptor = wgpu::DeviceDescriptor { required_limits, ..Default::default() };
    let (device, _queue) = pollster::block_on(software.adapter.request_device(&descriptor)).unwrap();
    let folder = std::env::temp_dir().join(format!("lockstep-wgpu-programs-{}", std::process::id()));
    let file = Cache::at(&folder);
    file.write("name", &packed(b"code")).unwrap();
    assert!(Programs::named(&device, "name".into(), &file).is_none());
    assert!(file.names().is_empty(), "the file that may be the cause is removed");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn damage_is_detected() {
    let content = packed(b"code");
    assert_eq!(unpacked(&content), Some(&b"code"[..]));
    for at in 0..content.len() {
        let mut damaged = content.clone();
        damaged[at] ^= 1;
        assert_eq!(unpacked(&damaged), None);
        assert_eq!(unpacked(&content[..at]), None);
    }
}
