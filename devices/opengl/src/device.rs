//! Implements the devices of `lockstep-core` by OpenGL.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use lockstep_core::backend::{
    Completion, Cost, Counter, Device, DeviceId, DeviceProperties, HardwareId, KernelId, KernelInfo,
    LaunchOption,
};
use lockstep_core::launch::number;
use lockstep_core::work::{Operation, Task as CoreTask, Work};
use lockstep_core::{Error, KeySize, Result};
use lockstep_gpu_host::{ContextThread, Exclusive, Messages, StagingPool, submit};

use crate::blocks::{self, Experiment};
use crate::driver::Driver;
use crate::egl::{Library, Place};
use crate::fixslice::{self, Tiling};
use crate::gl::Gl;
use crate::kernel::{Family, KERNELS};

/// Bytes of a chunk. A chunk is large enough to fill the device and to make the cost of a draw small, and small enough that
/// copies and draws overlap. The chunks of a software device are smaller, because it shares caches with the threads that
/// fill its textures.
const CHUNK: usize = 4 << 20;
const SOFTWARE_CHUNK: usize = 1 << 20;

/// Only one context of a software device is used at a time. When Mesa's llvmpipe (seen with 22.3.6) decides whether a texture
/// is in use, it reads the scenes of other contexts without a lock. It crashes if the threads of these contexts free the
/// scenes at that time.
static SOFTWARE_CONTEXTS: Exclusive = Exclusive::new();

/// Messages that have at least this number of bytes on average are divided into tiles of 64 blocks. Shorter messages would
/// leave most of such a tile empty.
const LARGE_TILES_FROM: usize = 1024;

/// A device with OpenGL: a GPU, or software that implements OpenGL.
pub struct OpenGlDevice {
    id: DeviceId,
    driver: Library,
    place: Place,
    infos: Vec<KernelInfo>,
    /// The open device. It is opened at its first use.
    opened: OnceLock<Result<Opened>>,
    chunk: usize,
    experiment: Experiment,
    /// For each kernel, the number of calls and of their bytes.
    counters: [(AtomicU64, AtomicU64); KERNELS.len()],
}

#[derive(Clone)]
struct Opened {
    fixslice: Arc<StagingPool<Driver<fixslice::Chunk>>>,
    blocks: Arc<StagingPool<Driver<blocks::Chunk>>>,
    renderer: String,
    version: String,
}

impl OpenGlDevice {
    pub(crate) fn new(id: DeviceId, driver: Library, place: Place) -> OpenGlDevice {
        let infos = KERNELS.iter().map(|kernel| KernelInfo {
            name: kernel.name,
            description: kernel.description,
            constant_time: kernel.constant_time,
            missing: None,
        });
        OpenGlDevice {
            id,
            driver,
            infos: infos.collect(),
            opened: OnceLock::new(),
            chunk: if place.is_software { SOFTWARE_CHUNK } else { CHUNK },
            experiment: Experiment::default(),
            place,
            counters: Default::default(),
        }
    }

    /// Sets the size of chunks in bytes, for tests.
    pub fn with_chunk(mut self, bytes: usize) -> OpenGlDevice {
        self.chunk = bytes.max(1);
        self
    }

    /// Sets options for draws by the kernels of the GeForce 6800, to reproduce the published measurements.
    pub fn with_experiment(mut self, experiment: Experiment) -> OpenGlDevice {
        self.experiment = experiment;
        self
    }

    /// Makes the device use OpenGL ES instead of OpenGL, for tests.
    pub fn by_opengl_es(mut self) -> OpenGlDevice {
        self.place.is_embedded = true;
        self
    }

    /// Replaces the limit for the width and height of textures that the driver states, for tests.
    pub fn with_texture_limit(mut self, texels: usize) -> OpenGlDevice {
        self.place.largest = Some(texels);
        self
    }

    /// Makes the device behave, after this number of draws, as if the driver had lost the context. For tests.
    ///
    /// # Errors
    /// If the device cannot be opened.
    pub fn lose_after(&self, draws: u32) -> Result<()> {
        self.opened()?.fixslice.device().thread.send(move |gl| gl.lose_after(draws)).wait()
    }

    /// The number of nonzero bytes that keys and data have left in the context, for tests of wiping.
    ///
    /// # Errors
    /// If the device cannot be opened, or memory cannot be read back.
    pub fn remains(&self) -> Result<usize> {
        let remains = self.opened()?.fixslice.device().thread.send(|gl| gl.remains()).wait()?;
        remains.map_err(|reason| Error::DeviceFailed { device: self.id, reason })
    }

    fn launched(&self, launch: &[(&'static str, u32)]) -> OpenGlDevice {
        let edge = number(launch, "edge").map(|edge| edge as usize);
        let new = OpenGlDevice::new(self.id, self.driver, self.place.clone()).with_chunk(self.chunk);
        new.with_experiment(Experiment { edge, ..self.experiment })
    }

    fn opened(&self) -> Result<&Opened> {
        let open = || {
            let (id, driver, place) = (self.id, self.driver, self.place.clone());
            let exclusive = place.may_be_software().then_some(&SOFTWARE_CONTEXTS);
            let thread = ContextThread::start(id, exclusive, move || {
                Gl::open(&driver, &place).map_err(|reason| Error::DeviceFailed { device: id, reason })
            })?;
            let (renderer, version) = thread.run(|gl| Ok(gl.names()))?;
            let thread = Arc::new(thread);
            let fixslice = StagingPool::new(Arc::new(Driver::new(id, Arc::clone(&thread))));
            let blocks = StagingPool::new(Arc::new(Driver::new(id, thread)));
            Ok(Opened { fixslice: Arc::new(fixslice), blocks: Arc::new(blocks), renderer, version })
        };
        self.opened.get_or_init(open).as_ref().map_err(Clone::clone)
    }
}

/// The launch options for users. Every device supports the largest value of `edge` (see `blocks::Experiment`).
pub(crate) const LAUNCH_OPTIONS: &[LaunchOption] = &[LaunchOption {
    name: "edge",
    meaning: "the width and height of the textures in texels",
    range: 1..=1024,
    multiple: 1,
    kernels: &["opengl/6800", "opengl/6800-mix2", "opengl/6800-xor2"],
}];

impl Device for OpenGlDevice {
    fn with_launch(&self, launch: &[(&'static str, u32)]) -> Result<Option<Arc<dyn Device>>> {
        Ok(Some(Arc::new(self.launched(launch))))
    }

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
        let kernel = KERNELS.get(usize::from(kernel.0))?;
        supports(kernel.family, operation, size).then_some(())?;
        // These are rough estimates, because the devices differ widely.
        Some(if self.place.is_software { Cost::new(1e6, 0.1) } else { Cost::new(500_000.0, 1.0) })
    }

    fn counters(&self) -> Vec<Counter> {
        let used = KERNELS.iter().zip(&self.counters).map(|(kernel, (launches, bytes))| Counter {
            name: kernel.name,
            launches: launches.load(Ordering::Relaxed),
            bytes: bytes.load(Ordering::Relaxed),
        });
        used.filter(|counter| counter.launches > 0).collect()
    }

    fn submit<'w, 'd: 'w>(&self, kernel: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>> {
        let operation = work.task.operation();
        let index = usize::from(kernel.0);
        let Some(kernel) = KERNELS.get(index) else { return Err(operation.unsupported_by("this device")) };
        let CoreTask::Pass(pass, segments) = work.task else {
            return Err(operation.unsupported_by(kernel.name));
        };
        let Some(first) = segments.first() else { return Ok(Completion::Done) };
        let size = first.key.size();
        if !supports(kernel.family, operation, size) {
            return Err(operation.unsupported_by(kernel.name));
        }
        let bytes: usize = segments.iter().map(|segment| segment.data.len()).sum();
        if bytes == 0 {
            return Ok(Completion::Done);
        }
        let opened = self.opened()?;
        self.counters[index].0.fetch_add(1, Ordering::Relaxed);
        self.counters[index].1.fetch_add(bytes as u64, Ordering::Relaxed);
        let chunk = self.chunk;
        match kernel.family {
            Family::Fixslice => {
                let tiling =
                    if bytes / segments.len() < LARGE_TILES_FROM { Tiling::SMALL } else { Tiling::LARGE };
                let pool = Arc::clone(&opened.fixslice);
                let task = fixslice::Task { pool, operation, pass, size, tiling, chunk };
                submit(task, Messages::Pass(pass, segments))
            }
            Family::Blocks(kernel) => {
                let task = blocks::Task {
                    pool: Arc::clone(&opened.blocks),
                    kernel,
                    pass,
                    size,
                    chunk,
                    experiment: self.experiment,
                };
                submit(task, Messages::Pass(pass, segments))
            }
        }
    }
}

fn supports(family: Family, operation: Operation, size: KeySize) -> bool {
    match family {
        Family::Fixslice => fixslice::Program::of(operation, size, true).is_some(),
        Family::Blocks(kernel) => kernel.supports(operation),
    }
}

#[cfg(test)]
mod tests;
