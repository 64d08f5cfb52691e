//! A device of OpenGL as a device of `lockstep-core`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use lockstep_core::backend::{
    Completion, Cost, Counter, Device, DeviceId, DeviceProperties, HardwareId, KernelId, KernelInfo,
};
use lockstep_core::work::{Operation, Task as CoreTask, Work};
use lockstep_core::{Error, KeySize, Result};
use lockstep_gpu_host::{ContextThread, Messages, StagingPool, submit};

use crate::chunk::{Driver, Task};
use crate::egl::{Library, Place};
use crate::gl::Gl;
use crate::kernel::{FAMILIES, Program};
use crate::layout::Tiling;

/// Bytes of a chunk: enough to fill the device and to outweigh the cost of a draw, but so few that copies and draws overlap.
/// The chunks of a software device are smaller, because it shares caches with the threads that fill its textures.
const CHUNK: usize = 4 << 20;
const SOFTWARE_CHUNK: usize = 1 << 20;

/// Messages that have at least this number of bytes on average are divided into tiles of 64 blocks. Shorter messages would
/// leave most of such a tile empty.
const LARGE_TILES_FROM: usize = 1024;

/// A GPU, or a software device.
pub struct OpenGlDevice {
    id: DeviceId,
    library: Library,
    place: Place,
    infos: Vec<KernelInfo>,
    /// Opened at its first use.
    opened: OnceLock<Result<Opened>>,
    chunk: usize,
    draws: AtomicU64,
    bytes: AtomicU64,
}

#[derive(Clone)]
struct Opened {
    pool: Arc<StagingPool<Driver>>,
    renderer: String,
    version: String,
}

impl OpenGlDevice {
    pub(crate) fn new(id: DeviceId, library: Library, place: Place) -> OpenGlDevice {
        let infos = FAMILIES.iter().map(|family| KernelInfo {
            name: family.name,
            description: family.description,
            constant_time: family.constant_time,
            missing: None,
        });
        OpenGlDevice {
            id,
            library,
            infos: infos.collect(),
            opened: OnceLock::new(),
            chunk: if place.is_software { SOFTWARE_CHUNK } else { CHUNK },
            place,
            draws: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// The same device with chunks of another size in bytes, for tests.
    pub fn with_chunk(mut self, bytes: usize) -> OpenGlDevice {
        self.chunk = bytes.max(1);
        self
    }

    /// Behaves after this number of draws as if the driver had lost the context, for tests.
    ///
    /// # Errors
    /// If the device cannot be opened.
    pub fn lose_after(&self, draws: u32) -> Result<()> {
        self.opened()?.pool.device().thread.send(move |gl| gl.lose_after(draws)).wait()
    }

    fn opened(&self) -> Result<&Opened> {
        let open = || {
            let (id, library, place) = (self.id, self.library.clone(), self.place.clone());
            let thread = ContextThread::start(id, move || {
                Gl::open(&library, &place).map_err(|reason| Error::DeviceFailed { device: id, reason })
            })?;
            let (renderer, version) = thread.run(|gl| Ok(gl.names()))?;
            let pool = Arc::new(StagingPool::new(Arc::new(Driver { id, thread })));
            Ok(Opened { pool, renderer, version })
        };
        self.opened.get_or_init(open).as_ref().map_err(Clone::clone)
    }
}

impl Device for OpenGlDevice {
    fn id(&self) -> DeviceId {
        self.id
    }

    fn description(&self) -> String {
        match self.opened() {
            Ok(Opened { renderer, version, .. }) => format!("{renderer}, OpenGL {version}"),
            Err(error) => error.to_string(),
        }
    }

    fn properties(&self) -> DeviceProperties {
        if self.place.is_software { DeviceProperties::SOFTWARE } else { DeviceProperties::default() }
    }

    fn hardware(&self) -> Option<HardwareId> {
        if self.place.is_software {
            return None;
        }
        let model = self.opened().map_or("", |opened| &opened.renderer);
        Some(HardwareId::new(0, model, &self.place.pci_address()))
    }

    fn kernels(&self) -> &[KernelInfo] {
        &self.infos
    }

    fn cost(&self, kernel: KernelId, operation: Operation, size: KeySize) -> Option<Cost> {
        self.infos.get(usize::from(kernel.0))?;
        Program::of(operation, size, true)?;
        // Estimates: these devices differ widely.
        Some(if self.place.is_software { Cost::new(1e6, 0.1) } else { Cost::new(500_000.0, 1.0) })
    }

    fn counters(&self) -> Vec<Counter> {
        let (launches, bytes) = (self.draws.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed));
        vec![Counter { name: FAMILIES[0].name, launches, bytes }]
    }

    fn submit<'w, 'd: 'w>(&self, kernel: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>> {
        let operation = work.task.operation();
        let name = self.infos.get(usize::from(kernel.0)).map_or("this device", |info| info.name);
        let CoreTask::Pass(pass, segments) = work.task else {
            return Err(operation.unsupported_by(name));
        };
        let Some(first) = segments.first() else { return Ok(Completion::Done) };
        let size = first.key.size();
        if Program::of(operation, size, true).is_none() || usize::from(kernel.0) >= self.infos.len() {
            return Err(operation.unsupported_by(name));
        }
        let bytes: usize = segments.iter().map(|segment| segment.data.len()).sum();
        let tiling = if bytes / segments.len() < LARGE_TILES_FROM { Tiling::SMALL } else { Tiling::LARGE };
        self.draws.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        let task =
            Task { pool: Arc::clone(&self.opened()?.pool), operation, pass, size, tiling, chunk: self.chunk };
        submit(task, Messages::Segments(segments))
    }
}
