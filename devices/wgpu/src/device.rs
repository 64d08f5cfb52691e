//! Implements the devices of `lockstep-core` by adapters of wgpu.

use std::sync::{Arc, OnceLock};

use lockstep_cache::Cache;
use lockstep_core::backend::{
    Completion, Cost, Counter, Device, DeviceId, DeviceMemory, DeviceProperties, HardwareId, KernelId,
    KernelInfo,
};
use lockstep_core::work::{AeadMessage, FusedAead, Operation, Pass, Segment, Stream, Table, Work};
use lockstep_core::{Error, KeySize, Result};
use lockstep_gpu_host::table::run_on_host;
use lockstep_gpu_host::{Kind, Messages, Overhead, check, submit};
use lockstep_modes::transfer::zero_output;
use lockstep_modes::{Direction, Executor, gcm};

use crate::gpu::Gpu;
use crate::kernel::{FAMILIES, Family, LaunchOptions};
use crate::ocb_long;
use crate::staging::Pool;
use crate::task::{Chunks, Task};

mod memory;

/// Number of bytes of a chunk. It is large enough to fill the device and to make the cost of launches small, and small
/// enough for chunks to overlap. It is smaller for a software device, which shares caches with the threads that fill its
/// buffers.
const CHUNK: usize = 4 << 20;
const SOFTWARE_CHUNK: usize = 1 << 20;

/// Number of bytes of a chunk in device memory. Chunks in device memory do not overlap, so a chunk is large enough to make the cost
/// of a submission small. The second number is for GPUs that are not discrete, which have less memory.
const DEVICE_CHUNK: usize = 32 << 20;
const SMALL_DEVICE_CHUNK: usize = 8 << 20;

/// Smallest number of bytes per segment for which invocations share tiles. Shorter segments would leave most of a tile
/// empty.
const WIDE_FROM: usize = 8 << 10;

/// A device of wgpu: a GPU, or software that implements the same interfaces.
pub struct WgpuDevice {
    id: DeviceId,
    pub(crate) adapter: wgpu::Adapter,
    description: String,
    software: bool,
    /// The staging buffers of the open device. The device is opened at its first use.
    pool: OnceLock<Result<Arc<Pool>>>,
    infos: Vec<KernelInfo>,
    options: LaunchOptions,
    /// The cache in which compiled programs are stored; `None` if they are not stored.
    cache: Option<Cache>,
}

impl WgpuDevice {
    pub(crate) fn new(id: DeviceId, adapter: wgpu::Adapter) -> WgpuDevice {
        let info = adapter.get_info();
        let missing = lacks(&adapter);
        let infos = FAMILIES.iter().map(|family| KernelInfo {
            name: family.name,
            description: family.description,
            constant_time: family.constant_time,
            missing: missing.clone(),
        });
        let driver = [info.driver.trim(), info.driver_info.trim()].join(" ");
        let driver = if driver.trim().is_empty() { String::new() } else { format!(", {}", driver.trim()) };
        WgpuDevice {
            id,
            description: format!("{}, {}{driver}", info.name.trim(), interface(info.backend)),
            software: info.device_type == wgpu::DeviceType::Cpu,
            infos: infos.collect(),
            adapter,
            pool: OnceLock::new(),
            options: LaunchOptions::default(),
            cache: Cache::of_user("wgpu"),
        }
    }

    /// Sets the cache for compiled programs.
    pub fn with_cache(mut self, cache: Cache) -> WgpuDevice {
        self.cache = Some(cache);
        self
    }

    /// Sets the options for the submission of work.
    pub fn with_launches(mut self, options: LaunchOptions) -> WgpuDevice {
        self.options = options;
        self
    }

    /// Makes the device behave from now on as if the driver had lost it, for tests.
    ///
    /// # Errors
    /// If the device cannot be opened.
    pub fn lose(&self) -> Result<()> {
        self.gpu()?.lose();
        Ok(())
    }

    /// Does everything that a pass over the segments does except running the kernel.
    ///
    /// # Errors
    /// As [`Device::submit`].
    pub fn overhead<'w, 'd: 'w>(
        &self,
        kind: Overhead,
        segments: &'w mut [Segment<'d>],
    ) -> Result<Completion<'w>> {
        match (kind, segments.first()) {
            (Overhead::Copy, Some(_)) => {
                let pass = Pass::EcbEncrypt;
                self.start(None, Kind::of_pass(pass), Messages::Pass(pass, segments))
            }
            _ => Ok(Completion::Done),
        }
    }

    pub(crate) fn pool(&self) -> Result<Arc<Pool>> {
        let open = || {
            let gpu = Gpu::open(self.id, &self.adapter, self.options.buffer, self.cache.as_ref())?;
            Ok(Arc::new(Pool::new(gpu)))
        };
        self.pool.get_or_init(open).clone()
    }

    pub(crate) fn gpu(&self) -> Result<Arc<Gpu>> {
        self.pool().map(|pool| Arc::clone(pool.device()))
    }

    fn family(&self, kernel: KernelId) -> Option<&'static Family> {
        let index = usize::from(kernel.0);
        let info = self.infos.get(index)?;
        FAMILIES.get(index).filter(|_| info.missing.is_none())
    }

    /// The family of a kernel, and the kind of an operation with keys of one size.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    fn supported(
        &self,
        kernel: KernelId,
        operation: Operation,
        size: KeySize,
    ) -> Result<(&'static Family, Kind)> {
        let name = self.infos.get(usize::from(kernel.0)).map_or("this device", |info| info.name);
        let unsupported = || operation.unsupported_by(name);
        let family = self.family(kernel).ok_or_else(unsupported)?;
        Ok((family, kind_of(family, operation, size).ok_or_else(unsupported)?))
    }

    pub(crate) fn start<'w, 'd: 'w>(
        &self,
        family: Option<&'static Family>,
        kind: Kind,
        mut messages: Messages<'w, 'd>,
    ) -> Result<Completion<'w>> {
        if messages.is_empty() {
            return Ok(Completion::Done);
        }
        let size = messages.key(0).size();
        let bytes: usize = (0..messages.len()).map(|index| messages.data(index).len()).sum();
        let wide = !self.software && bytes / messages.len() >= WIDE_FROM;
        let wide = self.options.wide.unwrap_or(wide);
        let chunks = if self.software {
            Chunks { host: SOFTWARE_CHUNK, device: SOFTWARE_CHUNK }
        } else {
            let is_large = self.adapter.get_info().device_type == wgpu::DeviceType::DiscreteGpu;
            Chunks { host: CHUNK, device: if is_large { DEVICE_CHUNK } else { SMALL_DEVICE_CHUNK } }
        };
        let chunks = self.options.chunk.map_or(chunks, |bytes| Chunks { host: bytes, device: bytes });
        let operation = messages.operation();
        let mut task =
            Task { pool: self.pool()?, family, operation, kind, size, wide, chunks, offsets: None };
        if let Messages::Fused(fused, all) = messages.reborrow()
            && all.iter().any(|message| task.is_long(message))
        {
            // The check must precede the first write to an output.
            check(&mut task, &messages)?;
            let Messages::Fused(_, all) = messages else { unreachable!("checked above") };
            return self.run_long(&task, fused, all).map(|()| Completion::Done);
        }
        submit(task, messages)
    }

    /// Processes messages and waits for them. At least one of the messages is too long for a chunk.
    fn run_long(&self, task: &Task, fused: FusedAead, all: &mut [AeadMessage<'_>]) -> Result<()> {
        let passes = Passes { device: self, family: task.family };
        let direction = if fused.opens() { Direction::Decrypt } else { Direction::Encrypt };
        all.iter_mut().for_each(|message| message.invalidate(false));
        let groups = all.chunk_by_mut(|one, next| !task.is_long(one) && !task.is_long(next));
        let mut outcomes = groups.map(|group| match group {
            [message] if task.is_long(message) => match task.kind {
                Kind::Ocb { opens } => ocb_long::seal_or_open(task, opens, message),
                _ => gcm::run(&passes, direction, group),
            },
            _ => submit(task.clone(), Messages::Fused(fused, group))?.wait(),
        });
        let outcome = outcomes.try_for_each(|outcome| outcome);
        outcome.inspect_err(|_| {
            for message in all {
                message.invalidate(true);
                let _ = zero_output(&passes, &mut message.data);
            }
        })
    }
}

/// Runs the passes of messages of GCM that are too long for a chunk.
struct Passes<'d> {
    device: &'d WgpuDevice,
    family: Option<&'static Family>,
}

impl Executor for Passes<'_> {
    fn run_pass(&self, pass: Pass, segments: &mut [Segment<'_>]) -> Result<()> {
        self.device.start(self.family, Kind::of_pass(pass), Messages::Pass(pass, segments))?.wait()
    }

    fn run_fused(&self, _: FusedAead, _: &mut [AeadMessage<'_>]) -> Result<bool> {
        Ok(false)
    }

    fn memory(&self, device: DeviceId) -> Result<&dyn DeviceMemory> {
        if device == self.device.id {
            return Ok(self.device);
        }
        Err(Error::OutOfReach { device: self.device.id, what: format!("memory of {device}") })
    }
}

/// The kind of an operation that a family supports. Serial modes and OCB3 have bitsliced programs only.
fn kind_of(family: &Family, operation: Operation, size: KeySize) -> Option<Kind> {
    let kind = Kind::of(operation).filter(|_| operation.takes_key(size))?;
    let is_supported = match kind {
        Kind::Chain(_) | Kind::Ocb { .. } => family.constant_time,
        Kind::Tiles(_) | Kind::Ghash | Kind::Polyval | Kind::Gcm { .. } => true,
    };
    is_supported.then_some(kind)
}

/// The name of the programming interface of a device.
fn interface(backend: wgpu::Backend) -> &'static str {
    match backend {
        wgpu::Backend::Vulkan => "Vulkan",
        wgpu::Backend::Metal => "Metal",
        wgpu::Backend::Gl => "OpenGL ES",
        _ => "an unknown interface",
    }
}

/// The reason why an adapter cannot run the programs; `None` if it can.
fn lacks(adapter: &wgpu::Adapter) -> Option<String> {
    let compute = wgpu::DownlevelFlags::COMPUTE_SHADERS;
    if !adapter.get_downlevel_capabilities().flags.contains(compute) {
        return Some("its driver has no compute shaders".into());
    }
    let (limits, needed) = (adapter.limits(), wgpu::Limits::downlevel_defaults());
    let too_small = limits.max_compute_workgroup_storage_size < needed.max_compute_workgroup_storage_size
        || limits.max_storage_buffers_per_shader_stage < needed.max_storage_buffers_per_shader_stage
        || limits.max_storage_buffer_binding_size < needed.max_storage_buffer_binding_size;
    too_small.then(|| "its limits are below those of a Raspberry Pi 4".into())
}

impl Device for WgpuDevice {
    fn id(&self) -> DeviceId {
        self.id
    }

    fn description(&self) -> String {
        self.description.clone()
    }

    fn properties(&self) -> DeviceProperties {
        if self.software { DeviceProperties::SOFTWARE } else { DeviceProperties::default() }
    }

    fn hardware(&self) -> Option<HardwareId> {
        let info = self.adapter.get_info();
        (!self.software).then(|| HardwareId::new(info.vendor, &info.name, &info.device_pci_bus_id))
    }

    fn kernels(&self) -> &[KernelInfo] {
        &self.infos
    }

    fn cost(&self, kernel: KernelId, operation: Operation, size: KeySize) -> Option<Cost> {
        let family = self.family(kernel)?;
        let serial = matches!(kind_of(family, operation, size)?, Kind::Chain(_));
        // Conservative estimates, because these devices differ widely.
        Some(match (self.software, serial) {
            (true, true) => Cost::new(1e6, 0.001),
            (true, false) => Cost::new(1e6, 0.2),
            // A message occupies only one lane of one invocation, so the CPU is faster unless there are thousands of
            // messages.
            (false, true) => Cost::new(300_000.0, 0.001),
            (false, false) => Cost::new(300_000.0, 2.0),
        })
    }

    fn memory(&self) -> Option<&dyn DeviceMemory> {
        Some(self)
    }

    fn counters(&self) -> Vec<Counter> {
        match self.pool.get() {
            Some(Ok(pool)) => pool.device().counters(),
            _ => Vec::new(),
        }
    }

    fn submit<'w, 'd: 'w>(&self, kernel: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>> {
        let Some(size) = work.task.key_size() else { return Ok(Completion::Done) };
        let (family, kind) = self.supported(kernel, work.task.operation(), size)?;
        self.start(Some(family), kind, work.task)
    }

    fn submit_table(
        &self,
        kernel: KernelId,
        stream: Stream,
        operation: Operation,
        table: &Table,
    ) -> Result<Completion<'static>> {
        let (family, kind) = self.supported(kernel, operation, table.key_size)?;
        // The host expands the keys of a table, so it must read the arrays of the table first.
        let run = |messages: Messages<'_, '_>| self.start(Some(family), kind, messages)?.wait();
        run_on_host(self, operation, table, stream, run).map(|()| Completion::Done)
    }
}
