//! Backends find devices; a device runs passes and states what they cost. The contract is at the crate's root.

use std::sync::Arc;

use zeroize::Zeroizing;

use crate::data::{DeviceSlice, PinnedBuffer};
use crate::error::{Error, Result};
pub use crate::hardware::HardwareId;
use crate::key::KeySize;
pub use crate::launch::LaunchOption;
pub use crate::names::{DeviceId, DeviceSelector, KernelName, Unit};
use crate::shown;
use crate::work::{Operation, Stream, Table, Work};

/// A kind of processor with its programming interface.
pub trait Backend: Send + Sync {
    /// The name of the backend: `cpu`, `cuda`, ...
    fn name(&self) -> &'static str;

    /// Finds the devices on this machine, real devices first. If there is no real device, [`Discovery::missing`] states the
    /// reason. This function never panics.
    fn discover(&self) -> Discovery;

    /// A quick check that starts no driver. It returns the reason why this machine certainly has no real device of this
    /// backend. `None` means that only [`Backend::discover`] can determine this.
    fn certainly_missing(&self) -> Option<Missing> {
        None
    }

    /// The table of launch options. It is empty if the devices have no launch options.
    fn launch_options(&self) -> &'static [LaunchOption] {
        &[]
    }

    /// Makes the device of this name if this starts no driver, as for simulated devices, even if [`Backend::discover`] does not
    /// list the device (`spu:4`). The result is `None` if the device has to be discovered. It is `Some(Err(_))`, with the reason,
    /// if this device does not exist.
    fn named(&self, _name: &DeviceSelector) -> Option<std::result::Result<Arc<dyn Device>, Missing>> {
        None
    }
}

/// The result of [`Backend::discover`].
#[derive(Default)]
pub struct Discovery {
    /// The devices, including emulators and simulators.
    pub devices: Vec<Arc<dyn Device>>,
    /// If there is no real device: the reason, and a remedy.
    pub missing: Option<Missing>,
}

/// Why a backend has no real device on this machine, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {remedy}")]
pub struct Missing {
    /// The missing component, such as `no libcuda.so.1`.
    pub reason: String,
    /// The remedy, such as `install the NVIDIA driver`.
    pub remedy: String,
}

/// Three independent facts about a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceProperties {
    /// The device imitates other hardware: it is an emulator or a simulator.
    pub simulated: bool,
    /// The device is used only if the user names it.
    pub by_name_only: bool,
    /// The device is so slow that tests give it smaller inputs.
    pub slow: bool,
}

impl DeviceProperties {
    /// The properties of emulators and simulators.
    pub const SIMULATOR: DeviceProperties =
        DeviceProperties { simulated: true, by_name_only: true, slow: true };

    /// The properties of devices for tests, and of software that offers the interface of real devices.
    pub const SOFTWARE: DeviceProperties =
        DeviceProperties { simulated: false, by_name_only: true, slow: true };

    /// True for a simulated or slow device. Users name such a device to study or test it, not for its speed.
    pub const fn is_for_study(&self) -> bool {
        self.simulated || self.slow
    }
}

/// One processor found at run time.
pub trait Device: Send + Sync {
    /// The name of the device, such as `cuda:0`.
    fn id(&self) -> DeviceId;

    /// Model, memory and driver, for people. The text must change when the driver changes.
    fn description(&self) -> String;

    /// Whether the device is simulated, used by name only, or slow. A real device is none of these.
    fn properties(&self) -> DeviceProperties {
        DeviceProperties::default()
    }

    /// The hardware behind the device, if other backends may have devices on the same hardware.
    fn hardware(&self) -> Option<HardwareId> {
        None
    }

    /// True for the processor that runs this program. The results of other devices are compared with the results of this
    /// device.
    fn is_trusted(&self) -> bool {
        false
    }

    /// Devices on which the self-test of a kernel also runs, with their kernel of the same name: the members of a group of devices
    /// and their variants, or devices on the same hardware with other launch options. A device whose launch options select machine
    /// code by the size of the work returns a device for each choice, because the small tests of the self-test do not run the code for
    /// large work. Empty for other devices.
    fn variants(&self) -> Vec<Arc<dyn Device>> {
        Vec::new()
    }

    /// The kernels of the device, the preferred ones first. A [`KernelId`] is an index into this list, which never changes.
    fn kernels(&self) -> &[KernelInfo];

    /// Estimates the cost of an operation by this kernel for data in host memory. `None` if the kernel does not support the
    /// operation.
    fn cost(&self, kernel: KernelId, operation: Operation, key: KeySize) -> Option<Cost>;

    /// The device's own memory, if a program can allocate it.
    fn memory(&self) -> Option<&dyn DeviceMemory> {
        None
    }

    /// Launches and bytes of each entry point so far, including those of self-tests. Empty if the device does not count
    /// them.
    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }

    /// A notice for users in one line, such as the reason why the device does not work as usual. `None` if there is no notice so far.
    fn notice(&self) -> Option<String> {
        None
    }

    /// A device on the same hardware with launch options that [`launch::parse`](crate::launch::parse) has checked by
    /// [`Backend::launch_options`]. `None` if the backend has none.
    ///
    /// # Errors
    /// [`Error::LaunchOption`] for a number that this device does not allow.
    fn with_launch(&self, _launch: &[(&'static str, u32)]) -> Result<Option<Arc<dyn Device>>> {
        Ok(None)
    }

    /// Starts the work. The contract is in the [documentation of the crate](crate). Work without messages may complete without a check
    /// of the operation.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the kernel does not support the operation, [`Error::OutOfReach`] if the data are in memory
    /// that the device cannot access, [`Error::DeviceFailed`].
    fn submit<'w, 'd: 'w>(&self, kernel: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>>;

    /// Starts an operation on messages that arrays in device memory describe. Support is optional.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the device has no memory or does not read such arrays; otherwise those of [`Device::submit`].
    fn submit_table(
        &self,
        kernel: KernelId,
        _stream: Stream,
        operation: Operation,
        _table: &Table,
    ) -> Result<Completion<'static>> {
        let kernel = self.kernels().get(usize::from(kernel.0));
        Err(operation.unsupported_by(kernel.map_or("this device", |info| info.name)))
    }
}

/// A kernel of a device, as an index into [`Device::kernels`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KernelId(pub u16);

/// The properties of a kernel.
#[derive(Debug, Clone)]
pub struct KernelInfo {
    /// The name of the kernel, such as `cpu/vaes512`.
    pub name: &'static str,
    /// A description of the kernel in one line, for people.
    pub description: &'static str,
    /// True if no branch and no address depends on secrets. Other kernels are used only if the user names them.
    pub constant_time: bool,
    /// Why the kernel cannot run on this device; `None` if it can run.
    pub missing: Option<String>,
}

/// How often an entry point ran on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    /// The entry point of a kernel.
    pub name: &'static str,
    /// Number of launches.
    pub launches: u64,
    /// Bytes of data that the entry point processed, as far as the host knows.
    pub bytes: u64,
}

/// A linear model of an operation's time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// The part of a call's time that does not depend on the number of bytes, in nanoseconds.
    pub fixed_ns: f64,
    /// Nanoseconds for each byte.
    pub ns_per_byte: f64,
}

impl Cost {
    /// A cost with a fixed time in nanoseconds and a rate in GB/s (10^9 bytes per second).
    pub const fn new(fixed_ns: f64, gb_per_s: f64) -> Self {
        Cost { fixed_ns, ns_per_byte: 1.0 / gb_per_s }
    }

    /// Nanoseconds for a call with this number of bytes.
    pub fn ns(&self, bytes: usize) -> f64 {
        self.fixed_ns + self.ns_per_byte * bytes as f64
    }
}

/// A device's own memory.
pub trait DeviceMemory: Send + Sync {
    /// Allocates device memory, zeroed.
    ///
    /// # Errors
    /// [`Error::DeviceFailed`] if there is not enough memory.
    fn allocate(&self, len: usize) -> Result<Box<dyn DeviceBuffer>>;

    /// True if [`DeviceSlice::from_raw`] can name memory of this device by an address. Otherwise the device numbers its buffers.
    fn has_addresses(&self) -> bool {
        false
    }

    /// Allocates page-locked host memory, zeroed. This method is optional: a device without such memory uses the default
    /// implementation.
    ///
    /// # Errors
    /// [`Error::DeviceFailed`] if there is not enough memory; [`Error::Unsupported`] if the device has no such memory.
    fn allocate_pinned(&self, _len: usize) -> Result<PinnedBuffer> {
        Err(Error::Unsupported { kernel: "this device", operation: "page-locked memory".into() })
    }

    /// Copies bytes from host memory to device memory, after earlier work on the stream, and waits for the end of the copy.
    ///
    /// # Errors
    /// [`Error::OutputLength`], [`Error::DeviceFailed`].
    fn upload(&self, from: &[u8], to: &DeviceSlice, stream: Stream) -> Result<()>;

    /// Zeroes device memory, after earlier work on the stream, and waits. The default implementation uploads zeros.
    ///
    /// # Errors
    /// [`Error::OutOfReach`], [`Error::DeviceFailed`].
    fn zero(&self, to: &DeviceSlice, stream: Stream) -> Result<()> {
        static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
        (0..to.len()).step_by(ZEROS.len()).try_for_each(|at| {
            let part = to.slice(at..to.len().min(at + ZEROS.len()));
            self.upload(&ZEROS[..part.len()], &part, stream)
        })
    }

    /// Copies bytes from device memory to host memory, after earlier work on the stream, and waits for the end of the copy.
    ///
    /// # Errors
    /// [`Error::OutputLength`], [`Error::DeviceFailed`].
    fn download(&self, from: &DeviceSlice, to: &mut [u8], stream: Stream) -> Result<()>;

    /// Queues a copy of these parts of device memory to the host. The copy runs after earlier work and before later work on
    /// the stream.
    ///
    /// # Errors
    /// [`Error::OutOfReach`], [`Error::DeviceFailed`].
    fn fetch(&self, from: &[DeviceSlice], stream: Stream) -> Result<Box<dyn Fetch>>;
}

/// A copy from device memory to the host that is in progress.
pub trait Fetch {
    /// True if [`Fetch::wait`] would not block.
    fn is_ready(&self) -> bool;

    /// Waits, and returns the parts, concatenated.
    ///
    /// # Errors
    /// [`Error::DeviceFailed`].
    fn wait(self: Box<Self>) -> Result<Zeroizing<Vec<u8>>>;
}

/// Bytes that have already been copied.
impl Fetch for Zeroizing<Vec<u8>> {
    fn is_ready(&self) -> bool {
        true
    }

    fn wait(self: Box<Self>) -> Result<Zeroizing<Vec<u8>>> {
        Ok(*self)
    }
}

/// Owned device memory. On drop, it is wiped and freed after all work on it has ended.
pub trait DeviceBuffer: Send {
    /// The whole buffer.
    fn slice(&self) -> DeviceSlice;
}

/// Work that has been submitted.
#[must_use = "results arrive when the completion is waited for"]
pub enum Completion<'w> {
    /// The work was done inside `submit`.
    Done,
    /// The work is in progress.
    Pending(Box<dyn Pending + 'w>),
}

/// Work in progress, as a backend implements it.
pub trait Pending {
    /// True if [`Pending::wait`] would not block.
    fn is_ready(&self) -> bool;

    /// Waits for the work, then writes the results to borrowed host memory and sets chaining states, tags and statuses.
    ///
    /// # Errors
    /// [`Error::DeviceFailed`].
    fn wait(self: Box<Self>) -> Result<()>;
}

impl Completion<'_> {
    /// True if [`Completion::wait`] would not block.
    pub fn is_ready(&self) -> bool {
        match self {
            Completion::Done => true,
            Completion::Pending(pending) => pending.is_ready(),
        }
    }

    /// Waits until the results are written.
    ///
    /// # Errors
    /// [`Error::DeviceFailed`].
    pub fn wait(self) -> Result<()> {
        match self {
            Completion::Done => Ok(()),
            Completion::Pending(pending) => pending.wait(),
        }
    }
}

/// The kernel of this name.
///
/// # Errors
/// [`Error::UnknownKernel`] if the device has no kernel of this name or cannot run it.
pub fn kernel_by_name(device: &dyn Device, name: &str) -> Result<KernelId> {
    let unknown = |known| Error::UnknownKernel { name: shown::name(name).into(), device: device.id(), known };
    match device.kernels().iter().position(|kernel| kernel.name == name) {
        None => {
            let names: Vec<_> = device.kernels().iter().map(|kernel| kernel.name).collect();
            Err(unknown(format!("it has {}", names.join(", "))))
        }
        Some(index) => match &device.kernels()[index].missing {
            Some(why) => Err(unknown(why.clone())),
            None => Ok(KernelId(index as u16)),
        },
    }
}
