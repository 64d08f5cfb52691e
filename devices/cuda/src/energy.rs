//! Reads the energy counters of GPUs with NVML, the library of `nvidia-smi`. NVML is opened at run time.
#![allow(unsafe_code, reason = "calls into a C library")]

use std::ffi::{OsStr, c_uint, c_ulonglong, c_void};

use libloading::Library;
use lockstep_core::backend::Missing;

type Code = c_uint;
type Handle = *mut c_void;
type TotalEnergy = unsafe extern "C" fn(Handle, *mut c_ulonglong) -> Code;

/// The energy counters of this machine's NVIDIA GPUs.
pub struct Energy {
    total: TotalEnergy,
    /// The GPUs that have a counter: Volta and newer.
    counting: Vec<Handle>,
    /// Keeps the functions loaded.
    _library: Library,
}

// SAFETY: any thread may use a device handle, and NVML is documented as thread-safe.
unsafe impl Send for Energy {}
// SAFETY: several threads may use a device handle, and NVML is documented as thread-safe.
unsafe impl Sync for Energy {}

impl Energy {
    /// Opens the driver's library.
    ///
    /// # Errors
    /// [`Missing`] if the library does not exist, NVML does not start, or no GPU has a counter.
    pub fn open() -> Result<Energy, Missing> {
        Energy::open_library("libnvidia-ml.so.1".as_ref())
    }

    /// Like [`Energy::open`], but opens the library with this name or path.
    ///
    /// # Errors
    /// As [`Energy::open`].
    pub fn open_library(name: &OsStr) -> Result<Energy, Missing> {
        let shown = name.to_string_lossy().into_owned();
        // SAFETY: loading runs the library's constructors, as it does in every program that uses the library.
        let library = unsafe { Library::new(name) };
        let library = library.map_err(|_| {
            missing(format!("no {shown}"), "install the NVIDIA driver, if there is such a GPU")
        })?;
        // SAFETY: nvml.h declares the functions with these types. The functions with `_v2` have not changed since they
        // were added.
        let (start, count, handle, total) = unsafe {
            (
                symbol::<unsafe extern "C" fn() -> Code>(&library, "nvmlInit_v2")?,
                symbol::<unsafe extern "C" fn(*mut c_uint) -> Code>(&library, "nvmlDeviceGetCount_v2")?,
                symbol::<unsafe extern "C" fn(c_uint, *mut Handle) -> Code>(
                    &library,
                    "nvmlDeviceGetHandleByIndex_v2",
                )?,
                symbol::<TotalEnergy>(&library, "nvmlDeviceGetTotalEnergyConsumption")?,
            )
        };
        let mut energy = Energy { total, counting: Vec::new(), _library: library };
        // NVML is never shut down, because other code in this process may use it.
        // SAFETY: the function has no preconditions.
        let code = unsafe { start() };
        let mut devices: c_uint = 0;
        // SAFETY: NVML has been started if `code` is 0. The function writes one number.
        if code != 0 || unsafe { count(&mut devices) } != 0 {
            return Err(missing(
                format!("NVML does not start (error {code})"),
                "see whether nvidia-smi works",
            ));
        }
        for index in 0..devices {
            let mut device: Handle = std::ptr::null_mut();
            // SAFETY: the function writes one handle.
            let found = unsafe { handle(index, &mut device) } == 0;
            if found && energy.of(device).is_some() {
                energy.counting.push(device);
            }
        }
        if energy.counting.is_empty() {
            return Err(missing(
                "no NVIDIA GPU here counts its energy".into(),
                "GPUs do from the Volta generation on",
            ));
        }
        Ok(energy)
    }

    /// The number of GPUs with a counter.
    pub fn devices(&self) -> usize {
        self.counting.len()
    }

    /// Returns the energy in millijoules that all GPUs with a counter together have used since the driver was loaded. Returns
    /// `None` if a counter cannot be read.
    pub fn millijoules(&self) -> Option<u64> {
        self.counting.iter().map(|device| self.of(*device)).sum()
    }

    fn of(&self, device: Handle) -> Option<u64> {
        let mut energy: c_ulonglong = 0;
        // SAFETY: the handle comes from NVML, and the function writes one number.
        let code = unsafe { (self.total)(device, &mut energy) };
        (code == 0).then_some(energy)
    }
}

/// Returns a function of the library.
///
/// # Safety
/// The function must have the type `T`. The caller must use the function only while the library is loaded.
unsafe fn symbol<T: Copy>(library: &Library, name: &str) -> Result<T, Missing> {
    // SAFETY: the caller guarantees the type of the function.
    let found = unsafe { library.get::<T>(name.as_bytes()) };
    let function =
        found.map_err(|_| missing(format!("NVML has no {name}"), "install a newer NVIDIA driver"))?;
    Ok(*function)
}

fn missing(reason: String, remedy: &str) -> Missing {
    Missing { reason, remedy: remedy.into() }
}
