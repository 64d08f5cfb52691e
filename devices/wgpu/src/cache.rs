//! Compiled programs, stored in the user's cache directory for the next process. Some drivers have their own cache, but wgpu
//! does not report which drivers do. Therefore this cache is used wherever wgpu supports it.
#![allow(unsafe_code, reason = "one call of wgpu")]

use std::sync::Mutex;

use lockstep_cache::{Cache, hash};

use crate::calls::{lock, scoped};

/// Maximum number of bytes of a file. Longer files are not read.
const MOST: u64 = 64 << 20;

/// The programs that the driver has compiled, and the file that stores them.
pub(crate) struct Programs {
    cache: wgpu::PipelineCache,
    file: Cache,
    name: String,
    /// The data in the file, without its checksum. Equal data is not written again.
    kept: Mutex<Option<Vec<u8>>>,
}

impl Programs {
    /// Opens the stored programs that earlier processes compiled for this adapter and driver. None if the device does not
    /// support a cache.
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

    /// Opens the cache of this name. Returns None if the driver refuses the data of the file. The device then works without a cache, and
    /// the next process starts with an empty cache.
    fn named(device: &wgpu::Device, name: String, file: &Cache) -> Option<Programs> {
        let kept = file.read(&name, MOST).and_then(|content| unpacked(&content).map(<[u8]>::to_vec));
        let descriptor =
            wgpu::PipelineCacheDescriptor { label: Some("lockstep"), data: kept.as_deref(), fallback: true };
        // SAFETY: the data come from `get_data`. A checksum and the permissions of the user's directory protect them. wgpu
        // and the driver refuse data of other adapters and versions.
        let (cache, error) = scoped(device, || unsafe { device.create_pipeline_cache(&descriptor) });
        if error.is_some() {
            let _ = file.remove(&name);
            return None;
        }
        Some(Programs { cache, file: file.clone(), name, kept: Mutex::new(kept) })
    }

    /// The cache of the driver, which compilations use.
    pub(crate) fn cache(&self) -> &wgpu::PipelineCache {
        &self.cache
    }

    /// Stores new programs. If the directory cannot be written, the next process compiles the programs again.
    pub(crate) fn store(&self) {
        let mut kept = lock(&self.kept);
        let data = self.cache.get_data();
        if let Some(data) = data.filter(|data| kept.as_ref() != Some(data)) {
            let _ = self.file.write(&self.name, &packed(&data));
            *kept = Some(data);
        }
    }
}

/// The content of a file: a checksum, which detects damage but not attacks, and the data.
fn packed(data: &[u8]) -> Vec<u8> {
    [&hash(data).to_le_bytes(), data].concat()
}

fn unpacked(content: &[u8]) -> Option<&[u8]> {
    let (sum, data) = content.split_first_chunk::<8>()?;
    (*sum == hash(data).to_le_bytes()).then_some(data)
}

#[cfg(test)]
mod tests;
