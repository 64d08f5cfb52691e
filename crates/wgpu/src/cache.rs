//! Compiled programs, kept in the user's cache directory for the next process: for drivers that keep none themselves. Which do
//! is not told, so all that offer it are asked.
#![allow(unsafe_code)] // one call of wgpu

use std::sync::Mutex;

use lockstep_cache::Cache;

use crate::gpu::{lock, scoped};

/// No longer file is read.
const MOST: u64 = 64 << 20;

/// What the driver has compiled, and where that is kept.
pub(crate) struct Programs {
    cache: wgpu::PipelineCache,
    file: Cache,
    name: String,
    /// What the file holds.
    kept: Mutex<Option<Vec<u8>>>,
}

impl Programs {
    /// What earlier processes compiled for this adapter and driver; none where there is nothing to keep it by.
    pub(crate) fn open(device: &wgpu::Device, info: &wgpu::AdapterInfo, file: &Cache) -> Option<Programs> {
        if !device.features().contains(wgpu::Features::PIPELINE_CACHE) {
            return None;
        }
        let wgpu::AdapterInfo { name, vendor, device: model, driver, driver_info, backend, .. } = info;
        let version = env!("CARGO_PKG_VERSION");
        let name =
            Cache::name_of(&format!("{version}|{backend:?}|{vendor}|{model}|{name}|{driver}|{driver_info}"));
        Programs::named(device, name, file)
    }

    /// None if the driver makes no cache: then the device works without, and the next process begins with an empty one.
    fn named(device: &wgpu::Device, name: String, file: &Cache) -> Option<Programs> {
        let kept = file.read(&name, MOST).and_then(|content| unpacked(&content).map(<[u8]>::to_vec));
        let descriptor =
            wgpu::PipelineCacheDescriptor { label: Some("lockstep"), data: kept.as_deref(), fallback: true };
        // SAFETY: the data are what `get_data` gave, as far as their checksum and the user's own folder vouch for it; wgpu and
        // the driver refuse those of other adapters and versions.
        let (cache, error) = scoped(device, || unsafe { device.create_pipeline_cache(&descriptor) });
        if error.is_some() {
            let _ = file.remove(&name);
            return None;
        }
        Some(Programs { cache, file: file.clone(), name, kept: Mutex::new(kept) })
    }

    /// For the compiler.
    pub(crate) fn cache(&self) -> &wgpu::PipelineCache {
        &self.cache
    }

    /// Keeps what is new. A folder that cannot be written to costs time, nothing else.
    pub(crate) fn keep(&self) {
        let mut kept = lock(&self.kept);
        let data = self.cache.get_data();
        if let Some(data) = data.filter(|data| kept.as_ref() != Some(data)) {
            let _ = self.file.write(&self.name, &packed(&data));
            *kept = Some(data);
        }
    }
}

/// FNV-1a: against damage, not against people.
fn checksum(data: &[u8]) -> [u8; 8] {
    let hash = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    data.iter().fold(0xcbf2_9ce4_8422_2325u64, hash).to_le_bytes()
}

fn packed(data: &[u8]) -> Vec<u8> {
    [&checksum(data), data].concat()
}

fn unpacked(content: &[u8]) -> Option<&[u8]> {
    let (sum, data) = content.split_first_chunk::<8>()?;
    (*sum == checksum(data)).then_some(data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::software;

    /// A device that was opened without the feature refuses to make one.
    #[test]
    fn a_device_works_without() {
        let Some(software) = software::device() else { return };
        let required_limits = wgpu::Limits::downlevel_defaults();
        let descriptor = wgpu::DeviceDescriptor { required_limits, ..Default::default() };
        let (device, _queue) = pollster::block_on(software.adapter.request_device(&descriptor)).unwrap();
        let folder = std::env::temp_dir().join(format!("lockstep-wgpu-programs-{}", std::process::id()));
        let file = Cache::at(&folder);
        file.write("name", &packed(b"code")).unwrap();
        assert!(Programs::named(&device, "name".into(), &file).is_none());
        assert!(file.names().is_empty(), "what may have been the reason is gone");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn damage_is_seen() {
        let content = packed(b"code");
        assert_eq!(unpacked(&content), Some(&b"code"[..]));
        for at in 0..content.len() {
            let mut damaged = content.clone();
            damaged[at] ^= 1;
            assert_eq!(unpacked(&damaged), None);
            assert_eq!(unpacked(&content[..at]), None);
        }
    }
}
