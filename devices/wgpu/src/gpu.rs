//! An open device of wgpu. If wgpu refuses an operation, the call returns an error. If the device is lost, all later calls
//! return an error. Neither event causes a panic.

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use lockstep_cache::Cache;
use lockstep_core::backend::{Counter, DeviceId};
use lockstep_core::{Error, Result};

use crate::allocation::Allocations;
use crate::cache::Programs;
use crate::calls::{lock, scoped};
use crate::kernel::Program;
use crate::launch::Launch;
use crate::shader;

/// An open device of wgpu, with its compiled programs.
pub(crate) struct Gpu {
    id: DeviceId,
    device: wgpu::Device,
    queue: wgpu::Queue,
    bindings: wgpu::BindGroupLayout,
    layout: wgpu::PipelineLayout,
    pipelines: Mutex<HashMap<Program, Arc<Mutex<Option<wgpu::ComputePipeline>>>>>,
    programs: Option<Programs>,
    /// The device memory that callers have allocated.
    pub(crate) allocations: Allocations,
    /// This lock is held while words of callers' memory are read and written back with only some of their bytes
    /// changed.
    pub(crate) parts_of_words: Mutex<()>,
    /// The reason why the device is unusable; `None` while it is usable.
    failure: Arc<Mutex<Option<String>>>,
    counters: Mutex<BTreeMap<&'static str, Counter>>,
    /// Makes polls panic, as wgpu does when the driver reports the loss of the device.
    #[cfg(test)]
    pub(crate) poll_panics: std::sync::atomic::AtomicBool,
}

/// The value at a place. If there is no value, the function calls `make` and keeps the result if there is no error. Only one
/// thread calls `make` at a time.
fn kept<T: Clone>(place: &Mutex<Option<T>>, make: impl FnOnce() -> Result<T>) -> Result<T> {
    let mut place = lock(place);
    if let Some(value) = &*place {
        return Ok(value.clone());
    }
    Ok(place.insert(make()?).clone())
}

/// The bindings of a launch: parts of the buffer `work` and of the buffer of parameters.
pub(crate) struct Bindings<'a> {
    pub(crate) work: &'a wgpu::Buffer,
    pub(crate) work_bytes: usize,
    pub(crate) parameters: &'a wgpu::Buffer,
    pub(crate) tiles: (usize, usize),
    pub(crate) schedules: (usize, usize),
    pub(crate) launch: usize,
}

/// Alignment of buffers and bindings in bytes, the largest that any device requires.
pub(crate) const ALIGNMENT: usize = 256;

impl Gpu {
    /// Opens an adapter. `buffer` is the limit for the size of a buffer in bytes; without it, the limit is the largest
    /// size that the adapter supports. Compiled programs are stored in `cache`.
    pub(crate) fn open(
        id: DeviceId,
        adapter: &wgpu::Adapter,
        buffer: Option<u64>,
        cache: Option<&Cache>,
    ) -> Result<Arc<Gpu>> {
        let failed = |reason: String| Error::DeviceFailed { device: id, reason };
        // Programs need no more than the limits of a Raspberry Pi 4, except for the maximum sizes of buffers and
        // bindings.
        let limits = wgpu::Limits {
            max_storage_buffer_binding_size: buffer
                .unwrap_or(adapter.limits().max_storage_buffer_binding_size),
            max_buffer_size: buffer.unwrap_or(adapter.limits().max_buffer_size),
            ..wgpu::Limits::downlevel_defaults()
        };
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("lockstep"),
            required_limits: limits,
            required_features: adapter.features() & wgpu::Features::PIPELINE_CACHE,
            memory_hints: wgpu::MemoryHints::MemoryUsage,
            ..Default::default()
        };
        let opened = pollster::block_on(adapter.request_device(&descriptor));
        let (device, queue) =
            opened.map_err(|error| failed(format!("the driver does not open the device: {error}")))?;
        let failure: Arc<Mutex<Option<String>>> = Arc::default();
        let (lost, uncaptured) = (Arc::clone(&failure), Arc::clone(&failure));
        device.set_device_lost_callback(move |_, message| {
            lock(&lost).get_or_insert_with(|| lost_because(&message));
        });
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            lock(&uncaptured).get_or_insert_with(|| error.to_string());
        }));
        let entry = |binding, ty| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
            count: None,
        };
        let storage = |read_only| wgpu::BufferBindingType::Storage { read_only };
        let bindings = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: None,
            entries: &[
                entry(0, storage(false)),
                entry(1, storage(true)),
                entry(2, storage(true)),
                entry(3, storage(true)),
            ],
        });
        let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&bindings)],
            immediate_size: 0,
        });
        let programs = cache.and_then(|cache| Programs::open(&device, &adapter.get_info(), cache));
        let gpu = Gpu {
            id,
            programs,
            allocations: Allocations::default(),
            parts_of_words: Mutex::default(),
            device,
            queue,
            bindings,
            layout,
            pipelines: Mutex::default(),
            failure,
            counters: Mutex::default(),
            #[cfg(test)]
            poll_panics: Default::default(),
        };
        gpu.check()?;
        Ok(Arc::new(gpu))
    }

    pub(crate) fn id(&self) -> DeviceId {
        self.id
    }

    pub(crate) fn failed(&self, reason: impl Into<String>) -> Error {
        Error::DeviceFailed { device: self.id, reason: reason.into() }
    }

    pub(crate) fn counters(&self) -> Vec<Counter> {
        lock(&self.counters).values().cloned().collect()
    }

    /// Returns an error if the device has ever failed.
    pub(crate) fn check(&self) -> Result<()> {
        match &*lock(&self.failure) {
            Some(reason) => Err(self.failed(reason.clone())),
            None => Ok(()),
        }
    }

    /// Makes the device behave from now on as if the driver had lost it.
    pub(crate) fn lose(&self) {
        self.device.destroy();
        lock(&self.failure).get_or_insert_with(|| lost_because("by request"));
    }

    /// Calls wgpu. If wgpu refuses an operation, this function returns the error.
    pub(crate) fn call<T>(&self, inside: impl FnOnce(&wgpu::Device, &wgpu::Queue) -> T) -> Result<T> {
        self.check()?;
        let (value, error) = scoped(&self.device, || inside(&self.device, &self.queue));
        self.check()?;
        match error {
            None => Ok(value),
            Some(wgpu::Error::OutOfMemory { .. }) => {
                Err(self.failed("not enough memory on the device: submit less at once"))
            }
            Some(error) => Err(self.failed(error.to_string())),
        }
    }

    /// A program, compiled at its first use. Other threads that need the program wait for the compilation. After a failure,
    /// the next call compiles the program again, because the failure may be a temporary lack of memory.
    pub(crate) fn pipeline(&self, program: Program) -> Result<wgpu::ComputePipeline> {
        let place = Arc::clone(lock(&self.pipelines).entry(program).or_default());
        kept(&place, || self.compile(program))
    }

    fn compile(&self, program: Program) -> Result<wgpu::ComputePipeline> {
        let text = shader::source(program);
        let compiled = self.call(|device, _| {
            let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
                label: Some(program.name()),
                source: wgpu::ShaderSource::Wgsl(text.into()),
            });
            device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(program.name()),
                layout: Some(&self.layout),
                module: &module,
                entry_point: Some("main"),
                compilation_options: wgpu::PipelineCompilationOptions {
                    // Programs fill workgroup memory before they read it.
                    zero_initialize_workgroup_memory: false,
                    ..Default::default()
                },
                cache: self.programs.as_ref().map(Programs::cache),
            })
        })?;
        if let Some(programs) = &self.programs {
            programs.store();
        }
        Ok(compiled)
    }

    /// Records a launch.
    pub(crate) fn launch(
        &self,
        pass: &mut wgpu::ComputePass<'_>,
        launch: &Launch,
        bindings: &Bindings<'_>,
    ) -> Result<()> {
        let pipeline = self.pipeline(launch.program)?;
        let part = |buffer, offset: usize, bytes: usize| {
            let size = std::num::NonZero::new(bytes as u64);
            wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset: offset as u64, size })
        };
        let resources = [
            part(bindings.work, 0, bindings.work_bytes),
            part(bindings.parameters, bindings.tiles.0, bindings.tiles.1),
            part(bindings.parameters, bindings.schedules.0, bindings.schedules.1),
            part(bindings.parameters, bindings.launch, Launch::SIZE),
        ];
        let entries: Vec<_> = (resources.into_iter().zip(0..))
            .map(|(resource, binding)| wgpu::BindGroupEntry { binding, resource })
            .collect();
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &self.bindings,
            entries: &entries,
        });
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(launch.workgroups(), 1, 1);
        let name = launch.program.name();
        let mut counters = lock(&self.counters);
        let counter = counters.entry(name).or_insert(Counter { name, launches: 0, bytes: 0 });
        counter.launches += 1;
        counter.bytes += launch.bytes;
        Ok(())
    }

    /// Maximum size of a buffer in bytes.
    pub(crate) fn most_buffer(&self) -> usize {
        usize::try_from(self.device.limits().max_buffer_size).unwrap_or(usize::MAX)
    }

    /// Maximum size of a binding in bytes.
    pub(crate) fn most_binding(&self) -> usize {
        usize::try_from(self.device.limits().max_storage_buffer_binding_size).unwrap_or(usize::MAX)
    }

    /// Waits for a submission and all earlier submissions.
    pub(crate) fn wait(&self, submission: &wgpu::SubmissionIndex) -> Result<()> {
        self.poll(wgpu::PollType::Wait { submission_index: Some(submission.clone()), timeout: None })
    }

    /// Runs callbacks of work that has ended, without waiting.
    pub(crate) fn poll_once(&self) {
        let _ = self.poll(wgpu::PollType::Poll);
    }

    fn poll(&self, until: wgpu::PollType) -> Result<()> {
        let polled = self.call(|device, _| {
            catch_loss(&self.failure, || {
                #[cfg(test)]
                if self.poll_panics.load(std::sync::atomic::Ordering::SeqCst) {
                    panic!("Error in Device::poll: Parent device is lost");
                }
                device.poll(until)
            })
        })?;
        match polled {
            Some(Ok(_)) => Ok(()),
            Some(Err(error)) => Err(self.failed(error.to_string())),
            None => self.check(),
        }
    }
}

/// Returns the result of a call to wgpu, or None if the call panics. wgpu panics when a device is lost during a wait. After
/// a panic, the device is treated as lost, so no later call uses a state that the panic left inconsistent.
fn catch_loss<T>(failure: &Mutex<Option<String>>, call: impl FnOnce() -> T) -> Option<T> {
    let panicked = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(value) => return Some(value),
        Err(panicked) => panicked,
    };
    let message = panicked.downcast_ref::<String>().map(String::as_str);
    let message = message.or_else(|| panicked.downcast_ref::<&str>().copied());
    lock(failure).get_or_insert_with(|| lost_because(message.unwrap_or("wgpu panicked")));
    None
}

fn lost_because(message: &str) -> String {
    format!("the device was lost ({}): restart the program to use it again", message.trim_end_matches('.'))
}

#[cfg(test)]
mod tests;
