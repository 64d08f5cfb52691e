//! What every backend is: it finds devices, and a device runs passes and says what they cost.
//!
//! ## The contract of [`Device::submit`]
//!
//! Work is submitted and completes later, when [`Completion::wait`] returns. Borrowed host memory is touched only
//! inside `submit` and inside `wait`: a device with memory of its own copies input away in the one and results back
//! in the other. So a completion may be dropped, or leaked, at any time without a pointer dangling: the work is then
//! abandoned and its results are lost. Pinned and device memory is held by reference and may be in use until the
//! completion has been waited for or dropped.

use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

use crate::data::{DeviceSlice, PinnedBuffer};
use crate::error::{Error, Result};
use crate::key::KeySize;
use crate::work::{Operation, Stream, Work};

/// A kind of processor with its programming interface.
pub trait Backend: Send + Sync {
    /// Its name: `cpu`, `cuda`, ...
    fn name(&self) -> &'static str;

    /// The devices there are on this machine, real ones first, and why there are not more. Never a panic.
    fn discover(&self) -> Discovery;

    /// A quick look, which starts no driver: why there is certainly no real device, if so. Who chooses by itself need not discover
    /// then.
    fn certainly_missing(&self) -> Option<Missing> {
        None
    }

    /// A device of its own that is made when somebody asks for it by name, such as `spu:4`, or why there is none of that
    /// name. `None` for names that are not of this kind.
    fn named(&self, _name: &str) -> Option<std::result::Result<Arc<dyn Device>, Missing>> {
        None
    }
}

/// What a backend found.
#[derive(Default)]
pub struct Discovery {
    /// The devices, simulated ones too.
    pub devices: Vec<Arc<dyn Device>>,
    /// Why there is no real device, if there is none.
    pub missing: Option<Missing>,
}

/// Why a backend has no real device here, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {remedy}")]
pub struct Missing {
    /// What is missing, such as `no libcuda.so.1`.
    pub reason: String,
    /// What to do, such as `install the NVIDIA driver`.
    pub remedy: String,
}

/// The name of a device: `cpu`, `cuda:0`, `cuda:emu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeviceId {
    /// The backend's name.
    pub backend: &'static str,
    /// Which of its devices.
    pub unit: Unit,
}

/// Which device of a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// The backend never has another.
    Only,
    /// One of several, by number.
    Number(u16),
    /// One of its own kind, such as an emulator.
    Named(&'static str),
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.unit {
            Unit::Only => f.write_str(self.backend),
            Unit::Number(number) => write!(f, "{}:{number}", self.backend),
            Unit::Named(name) => write!(f, "{}:{name}", self.backend),
        }
    }
}

/// One processor found at run time.
pub trait Device: Send + Sync {
    /// Its name.
    fn id(&self) -> DeviceId;

    /// What it is, for people: model, memory, driver.
    fn description(&self) -> String;

    /// True for emulators and simulators, which are chosen by name only.
    fn is_simulated(&self) -> bool {
        false
    }

    /// True for the processor that runs this program: with its results those of other devices are compared.
    fn is_trusted(&self) -> bool {
        false
    }

    /// The devices that it consists of, if it is a group of them, with their part in a kernel: each proves itself.
    fn parts(&self, _kernel: KernelId, _operation: Operation) -> Vec<Part> {
        Vec::new()
    }

    /// Its kernels. A [`KernelId`] is an index into this list, which never changes.
    fn kernels(&self) -> &[KernelInfo];

    /// What an operation costs by this kernel; `None` if the kernel does not do it. An estimate: the planner may
    /// measure better ones.
    fn cost(&self, kernel: KernelId, operation: Operation, key: KeySize) -> Option<Cost>;

    /// The device's own memory, if it has any that a program can ask for.
    fn memory(&self) -> Option<&dyn DeviceMemory> {
        None
    }

    /// What the device has done so far, self-tests included, by entry point: proof that it was this device that did
    /// the work. Empty if it does not count.
    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }

    /// Starts the work; see the module's documentation for what may be touched when.
    ///
    /// The caller has checked shapes: every segment is in the unit of its pass, XTS segments have a tweak, tags have
    /// lawful lengths.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the kernel does not do it, [`Error::OutOfReach`] if the data lie elsewhere,
    /// [`Error::DeviceFailed`].
    fn submit<'w, 'd: 'w>(&self, kernel: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>>;
}

/// A member of a group, and the kernel that does its part.
#[derive(Clone)]
pub struct Part {
    /// The member.
    pub device: Arc<dyn Device>,
    /// Its kernel.
    pub kernel: KernelId,
}

/// A kernel of a device, as an index into [`Device::kernels`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KernelId(pub u16);

/// What is known about a kernel.
#[derive(Debug, Clone)]
pub struct KernelInfo {
    /// Its name, such as `cpu/vaes512`.
    pub name: &'static str,
    /// What a person should know, in a line.
    pub description: &'static str,
    /// True if no branch and no address depends on secrets. Others are chosen by name only.
    pub constant_time: bool,
    /// Why it cannot run on this device, if it cannot.
    pub missing: Option<String>,
}

/// How often something ran on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    /// What ran: an entry point of a kernel.
    pub name: &'static str,
    /// How often it was launched.
    pub launches: u64,
    /// How many bytes of data it worked on, as far as the host knows.
    pub bytes: u64,
}

/// A linear model of an operation's time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Nanoseconds of a call however small.
    pub fixed_ns: f64,
    /// Nanoseconds of each byte.
    pub ns_per_byte: f64,
}

impl Cost {
    /// From a fixed cost and a rate in GB/s (10^9 bytes per second).
    pub const fn new(fixed_ns: f64, gb_per_s: f64) -> Self {
        Cost { fixed_ns, ns_per_byte: 1.0 / gb_per_s }
    }

    /// Nanoseconds for so many bytes.
    pub fn ns(&self, bytes: usize) -> f64 {
        self.fixed_ns + self.ns_per_byte * bytes as f64
    }
}

/// A device's own memory.
pub trait DeviceMemory: Send + Sync {
    /// Allocates device memory, zeroed.
    ///
    /// # Errors
    /// [`Error::DeviceFailed`] if there is not so much.
    fn allocate(&self, len: usize) -> Result<Box<dyn DeviceBuffer>>;

    /// Allocates page-locked host memory, zeroed.
    ///
    /// # Errors
    /// [`Error::DeviceFailed`] if there is not so much.
    fn allocate_pinned(&self, len: usize) -> Result<PinnedBuffer>;

    /// Copies from host to device memory, after earlier work on the stream; done when it returns.
    ///
    /// # Errors
    /// [`Error::OutputLength`], [`Error::DeviceFailed`].
    fn upload(&self, from: &[u8], to: &DeviceSlice, stream: Stream) -> Result<()>;

    /// Copies from device to host memory, after earlier work on the stream; done when it returns.
    ///
    /// # Errors
    /// [`Error::OutputLength`], [`Error::DeviceFailed`].
    fn download(&self, from: &DeviceSlice, to: &mut [u8], stream: Stream) -> Result<()>;

    /// Queues copies of these parts of device memory to the host, after earlier and before later work on the stream.
    ///
    /// # Errors
    /// [`Error::OutOfReach`], [`Error::DeviceFailed`].
    fn fetch(&self, from: &[DeviceSlice], stream: Stream) -> Result<Box<dyn Fetch>>;
}

/// Parts of device memory on their way to the host.
pub trait Fetch {
    /// True if [`Fetch::wait`] would not block.
    fn is_ready(&self) -> bool;

    /// Waits, and gives the parts, one behind the other.
    ///
    /// # Errors
    /// [`Error::DeviceFailed`].
    fn wait(self: Box<Self>) -> Result<Zeroizing<Vec<u8>>>;
}

/// Owned device memory, wiped and freed on drop, after all work on it.
pub trait DeviceBuffer: Send {
    /// All of it.
    fn slice(&self) -> DeviceSlice;
}

/// Work under way.
#[must_use = "results arrive when the completion is waited for"]
pub enum Completion<'w> {
    /// Done inside `submit`.
    Done,
    /// Under way.
    Pending(Box<dyn Pending + 'w>),
}

/// A backend's own side of a completion.
pub trait Pending {
    /// True if [`Pending::wait`] would not block.
    fn is_ready(&self) -> bool;

    /// Waits, and brings results to borrowed host memory, chaining states and statuses.
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

    /// Waits until the results are there.
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
/// [`Error::UnknownKernel`] if there is none, or if this device cannot run it.
pub fn kernel_by_name(device: &dyn Device, name: &str) -> Result<KernelId> {
    let unknown = |known| Error::UnknownKernel { name: name.into(), device: device.id(), known };
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
