//! A GPU as a machine. The CUDA driver executes the calls in the device's primary context. CUDA code of the caller may use the
//! same context.
//!
//! The context is opened by the first use of the device, not by discovery. Each call makes this context current, and at its end
//! restores the context that was current on the caller's thread.
#![allow(unsafe_code, reason = "calls of the driver, a C library that is opened at run time")]

use std::collections::HashMap;
use std::ffi::{CString, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, OnceLock};

use lockstep_core::backend::{HardwareId, Missing};

use super::{Entry, EventHandle, Fault, Hold, Limits, Machine, Outcome, Shape, StreamHandle};
use crate::archive::{Architecture, Archive};
use crate::compile::{Compiler, Image, ModuleCode};

mod api;
#[cfg(all(test, feature = "faults"))]
mod fake;
#[cfg(all(test, feature = "faults"))]
mod tests;

pub(crate) use api::certainly_missing;
use api::{Api, CUcontext, CUdevice, CUevent, CUfunction, CUmodule, CUstream, Code, missing, no_device};

// Values of `enum CUdevice_attribute` in cuda.h.
const BLOCK_THREADS: c_int = 1;
const MULTIPROCESSORS: c_int = 16;
const MAJOR: c_int = 75;
const MINOR: c_int = 76;
const SHARED_OPTIN: c_int = 97;
const SHARED: c_int = 8;
/// The attributes of the PCI domain, bus and device.
const PCI: [c_int; 3] = [50, 33, 34];

/// The PCI vendor number.
const NVIDIA: u32 = 0x10de;

/// A value of `enum CUfunction_attribute` in cuda.h.
const DYNAMIC_SHARED: c_int = 8;

/// The maximum dynamic shared memory of a launch, in bytes, unless the kernel's attribute requests more.
const SHARED_UNASKED: u32 = 48 * 1024;

/// Returns the devices that the driver lists.
///
/// # Errors
/// If there is no device to use, returns the reason.
pub(crate) fn discover() -> Result<Vec<(u16, Driver)>, Missing> {
    devices(Api::open()?, Archive::embedded(), Compiler::OF_MACHINE)
}

/// Makes the devices of a driver. Their code comes from an archive or from a compiler.
fn devices(api: Api, archive: &'static Archive, compiler: Compiler) -> Result<Vec<(u16, Driver)>, Missing> {
    let mut count = 0;
    // SAFETY: the function writes one integer to its argument.
    let code = unsafe { (api.device_count)(&mut count) };
    if code != 0 {
        return Err(missing(&api.describe(code), "see whether nvidia-smi works"));
    }
    if count == 0 {
        return Err(no_device());
    }
    let mut found = Vec::new();
    for number in 0..count.min(c_int::from(u16::MAX)) {
        match Driver::new(api, archive, compiler, number) {
            Ok(driver) => found.push((number as u16, driver)),
            Err(code) => return Err(missing(&api.describe(code), "see whether nvidia-smi works")),
        }
    }
    Ok(found)
}

/// A GPU.
pub(crate) struct Driver {
    api: Api,
    code: ModuleCode,
    device: CUdevice,
    name: String,
    /// The PCI address; empty if the driver does not report it.
    pci: String,
    memory: usize,
    architecture: Architecture,
    limits: Limits,
    opened: OnceLock<Opened>,
    /// Held while the context is opened.
    opening: Mutex<()>,
    /// For each module that was checked, true if its code is available without a compilation.
    at_hand: Mutex<HashMap<&'static str, bool>>,
}

/// The context and its modules. Handles are stored as integers, because the driver accepts them from any thread.
struct Opened {
    context: usize,
    modules: Mutex<HashMap<&'static str, usize>>,
    functions: Mutex<HashMap<Entry, usize>>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// After one of these errors the context is unusable (according to cuda.h), so this process can no longer use the device.
const STICKY: [Code; 14] = [4, 214, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 999];

/// Returns the remedy if the driver cannot use the code of a module, and `None` for other errors.
fn remedy(code: Code, image: &Image) -> Option<String> {
    match code {
        // The image is invalid, has no kernel image for the device, contains invalid PTX, or has an unsupported version of PTX.
        200 | 209 | 218 | 222 => Some(image.remedy.clone()),
        // The compiler of PTX was not found.
        221 => Some("install the driver's package with libnvidia-ptxjitcompiler.so.1".into()),
        // Compilation of PTX is disabled.
        223 => Some("unset CUDA_DISABLE_PTX_JIT and CUDA_DISABLE_JIT".into()),
        _ => None,
    }
}

const OUT_OF_MEMORY: Code = 2;
const NOT_READY: Code = 600;

impl Driver {
    fn new(api: Api, archive: &'static Archive, compiler: Compiler, number: c_int) -> Result<Driver, Code> {
        let check = |code| if code == 0 { Ok(()) } else { Err(code) };
        let (mut device, mut name, mut memory) = (0, [0u8; 128], 0);
        // SAFETY: the arguments have the types and the lengths that the functions write.
        unsafe {
            check((api.device)(&mut device, number))?;
            check((api.device_name)(name.as_mut_ptr().cast(), name.len() as c_int, device))?;
            check((api.device_memory)(&mut memory, device))?;
        }
        let attribute = |which| {
            let mut value = 0;
            // SAFETY: the function writes one integer to `value`.
            check(unsafe { (api.device_attribute)(&mut value, which, device) }).map(|()| value.max(0) as u32)
        };
        let pci = |[domain, bus, device]: [c_int; 3]| -> Result<String, Code> {
            let [domain, bus, device] = [attribute(domain)?, attribute(bus)?, attribute(device)?];
            Ok(format!("{domain:04x}:{bus:02x}:{device:02x}.0"))
        };
        let pci = pci(PCI);
        let architecture = Architecture { major: attribute(MAJOR)?, minor: attribute(MINOR)? };
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        let code = ModuleCode::new(archive, architecture, compiler);
        Ok(Driver {
            api,
            device,
            name: String::from_utf8_lossy(name).into_owned(),
            pci: pci.unwrap_or_default(),
            memory,
            architecture,
            limits: Limits {
                multiprocessors: attribute(MULTIPROCESSORS)?,
                shared: attribute(SHARED_OPTIN)?.max(attribute(SHARED)?),
                threads: attribute(BLOCK_THREADS)?,
                tensor_bits: code.has_tensor_bits(),
            },
            code,
            opened: OnceLock::new(),
            opening: Mutex::default(),
            at_hand: Mutex::default(),
        })
    }

    /// Returns the reason why the kernels cannot run on this GPU, or `None` if they can.
    pub(crate) fn missing(&self) -> Option<String> {
        self.code.available().err().map(|missing| missing.to_string())
    }

    fn fault(&self, code: Code) -> Fault {
        let words = self.api.describe(code);
        if STICKY.contains(&code) { Fault::Lost(words) } else { Fault::Failed(words) }
    }

    fn check(&self, code: Code) -> Outcome<()> {
        if code == 0 { Ok(()) } else { Err(self.fault(code)) }
    }

    /// Converts the result of a call that allocates memory.
    fn check_memory(&self, code: Code, bytes: usize, what: &'static str) -> Outcome<()> {
        if code == OUT_OF_MEMORY { Err(Fault::OutOfMemory { bytes, what }) } else { self.check(code) }
    }

    fn open(&self) -> Outcome<&Opened> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let _guard = lock(&self.opening);
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let mut context: CUcontext = null_mut();
        // SAFETY: the function writes the context to `context`. Dropping the `Driver` releases the context.
        let code = unsafe { (self.api.retain)(&mut context, self.device) };
        // A failure is not stored, so the next call tries again: other programs may have freed memory by then.
        self.check(code)?;
        let (modules, functions) = Default::default();
        Ok(self.opened.get_or_init(|| Opened { context: context as usize, modules, functions }))
    }

    /// Runs a function while the context is current.
    fn within<T>(&self, call: impl FnOnce(&Opened) -> Outcome<T>) -> Outcome<T> {
        let opened = self.open()?;
        // SAFETY: the context is retained.
        self.check(unsafe { (self.api.push)(opened.context as CUcontext) })?;
        let outcome = call(opened);
        let mut popped: CUcontext = null_mut();
        // SAFETY: the context was pushed above, and the function writes the removed context to `popped`.
        let code = unsafe { (self.api.pop)(&mut popped) };
        let value = outcome?;
        self.check(code).map(|()| value)
    }

    /// Loads a module. If the driver cannot load code that NVRTC has compiled, loads PTX of the archive.
    fn load(&self, name: &str) -> Outcome<CUmodule> {
        let failed = |missing: Missing| Fault::Failed(missing.to_string());
        let image = self.code.image(name).map_err(failed)?;
        let loaded = self.load_image(name, &image)?;
        match loaded {
            Err(missing) if image.is_compiled => match self.code.ptx_instead(name, missing.reason.clone()) {
                Ok(ptx) => self.load_image(name, &ptx)?.map_err(failed),
                Err(_) => Err(failed(missing)),
            },
            loaded => loaded.map_err(failed),
        }
    }

    /// Loads the code of a module, or returns why the driver cannot use this code.
    fn load_image(&self, name: &str, image: &Image) -> Outcome<Result<CUmodule, Missing>> {
        let mut module: CUmodule = null_mut();
        // SAFETY: the image is a complete cubin, or PTX that ends with a zero byte. The driver copies the image.
        let code = unsafe { (self.api.load)(&mut module, image.bytes.as_ptr().cast()) };
        if let Some(remedy) = remedy(code, image) {
            let (version, why, kind) = (self.api.version(), self.api.describe(code), image.kind);
            let reason =
                format!("the NVIDIA driver (CUDA {version}) does not load the {kind} of {name}: {why}");
            return Ok(Err(Missing { reason, remedy }));
        }
        self.check_memory(code, image.bytes.len(), "memory of the GPU")?;
        Ok(Ok(module))
    }

    /// Returns the function of an entry point. The first use of a module loads the module.
    fn function(&self, opened: &Opened, entry: Entry) -> Outcome<CUfunction> {
        if let Some(&function) = lock(&opened.functions).get(&entry) {
            return Ok(function as CUfunction);
        }
        let mut modules = lock(&opened.modules);
        let module = match modules.get(entry.module) {
            Some(&module) => module as CUmodule,
            None => {
                let module = self.load(entry.module)?;
                modules.insert(entry.module, module as usize);
                module
            }
        };
        drop(modules);
        let name = CString::new(entry.name).map_err(|_| Fault::Failed("a name with a zero".into()))?;
        let mut function: CUfunction = null_mut();
        // SAFETY: the module belongs to this context, and the name is a terminated string.
        self.check(unsafe { (self.api.function)(&mut function, module, name.as_ptr()) }).map_err(
            |fault| Fault::Failed(format!("no function {} in the machine code: {fault}", entry.name)),
        )?;
        lock(&opened.functions).insert(entry, function as usize);
        Ok(function)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if self.opened.get().is_some() {
            // SAFETY: the context was retained once. When its last user releases it, the driver also unloads the
            // modules.
            unsafe { (self.api.release)(self.device) };
        }
    }
}

fn stream_of(stream: StreamHandle) -> CUstream {
    stream.0 as CUstream
}

fn event_of(event: EventHandle) -> CUevent {
    event.0 as CUevent
}

// SAFETY: memory comes from the driver, which never allocates memory that is in use.
unsafe impl Machine for Driver {
    fn description(&self) -> String {
        let Architecture { major, minor } = self.architecture;
        let gib = self.memory as f64 / f64::from(1 << 30);
        format!("{}, compute capability {major}.{minor}, {gib:.0} GiB", self.name)
    }

    fn hardware(&self) -> Option<HardwareId> {
        Some(HardwareId::new(NVIDIA, &self.name, &self.pci))
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn has_machine_code(&self, module: &'static str) -> bool {
        self.code.is_built_in(module)
    }

    fn notice(&self) -> Option<String> {
        let why = self.code.nvrtc_failure()?;
        Some(format!("NVRTC is not used ({why}); the driver compiles PTX of this program instead"))
    }

    fn load(&self, entry: Entry) -> Outcome<()> {
        self.within(|opened| self.function(opened, entry).map(|_| ()))
    }

    fn lacks(&self, _entry: Entry) -> bool {
        // The GPU has all entry points, because the same sources are compiled for the GPU and for the emulator.
        false
    }

    fn is_at_hand(&self, entry: Entry) -> bool {
        let mut known = lock(&self.at_hand);
        *known.entry(entry.module).or_insert_with(|| self.code.is_at_hand(entry.module))
    }

    fn allocate(&self, len: usize) -> Outcome<u64> {
        self.within(|_| {
            let mut address = 0;
            // SAFETY: the function writes the address to `address`.
            let code = unsafe { (self.api.allocate)(&mut address, len) };
            self.check_memory(code, len, "memory of the GPU").map(|()| address)
        })
    }

    unsafe fn free(&self, address: u64, _len: usize) {
        // SAFETY: the caller guarantees the requirements of this function.
        let _ = self.within(|_| self.check(unsafe { (self.api.free)(address) }));
    }

    fn hold(&self, _address: u64, _len: usize) -> Outcome<Hold> {
        // Other code of the process may have allocated the memory, so this function cannot check the range. A wrong address cannot affect
        // host memory.
        Ok(Box::new(()))
    }

    fn allocate_pinned(&self, len: usize) -> Outcome<*mut u8> {
        const PORTABLE: c_uint = 1;
        self.within(|_| {
            let mut address = null_mut();
            // SAFETY: the function writes the address to `address`.
            let code = unsafe { (self.api.allocate_pinned)(&mut address, len, PORTABLE) };
            self.check_memory(code, len, "pinned host memory").map(|()| address.cast())
        })
    }

    unsafe fn free_pinned(&self, address: *mut u8, _len: usize) {
        // SAFETY: the caller guarantees the requirements of this function.
        let _ = self.within(|_| self.check(unsafe { (self.api.free_pinned)(address.cast()) }));
    }

    unsafe fn copy_in(&self, stream: StreamHandle, from: *const u8, to: u64, len: usize) -> Outcome<()> {
        // SAFETY: the caller guarantees the requirements of this function.
        self.within(|_| self.check(unsafe { (self.api.copy_in)(to, from.cast(), len, stream_of(stream)) }))
    }

    unsafe fn copy_out(&self, stream: StreamHandle, from: u64, to: *mut u8, len: usize) -> Outcome<()> {
        // SAFETY: the caller guarantees the requirements of this function.
        self.within(|_| self.check(unsafe { (self.api.copy_out)(to.cast(), from, len, stream_of(stream)) }))
    }

    unsafe fn zero(&self, stream: StreamHandle, address: u64, len: usize) -> Outcome<()> {
        if len == 0 {
            return Ok(());
        }
        // SAFETY: the caller guarantees the requirements of this function.
        self.within(|_| self.check(unsafe { (self.api.fill)(address, 0, len, stream_of(stream)) }))
    }

    unsafe fn launch(
        &self,
        stream: StreamHandle,
        entry: Entry,
        shape: Shape,
        parameters: &[u8],
    ) -> Outcome<()> {
        // CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE and _END.
        const POINTER: usize = 1;
        const SIZE: usize = 2;
        const END: usize = 0;
        self.within(|opened| {
            let function = self.function(opened, entry)?;
            if shape.shared > SHARED_UNASKED {
                // SAFETY: the function belongs to this context.
                self.check(unsafe {
                    (self.api.function_attribute)(function, DYNAMIC_SHARED, shape.shared as c_int)
                })?;
            }
            let mut len = parameters.len();
            let mut extra: [*mut c_void; 5] = [
                POINTER as *mut c_void,
                parameters.as_ptr().cast_mut().cast(),
                SIZE as *mut c_void,
                (&raw mut len).cast(),
                END as *mut c_void,
            ];
            // SAFETY: the driver reads the parameters before the call returns. The caller guarantees that the addresses in the
            // parameters refer to valid memory.
            self.check(unsafe {
                (self.api.launch)(
                    function,
                    shape.grid,
                    1,
                    1,
                    shape.threads,
                    1,
                    1,
                    shape.shared,
                    stream_of(stream),
                    null_mut(),
                    extra.as_mut_ptr(),
                )
            })
        })
    }

    fn new_stream(&self) -> Outcome<StreamHandle> {
        const NON_BLOCKING: c_uint = 1;
        self.within(|_| {
            let mut stream: CUstream = null_mut();
            // SAFETY: the function writes the stream to `stream`.
            self.check(unsafe { (self.api.new_stream)(&mut stream, NON_BLOCKING) })?;
            Ok(StreamHandle(stream as u64))
        })
    }

    fn free_stream(&self, stream: StreamHandle) {
        // SAFETY: `new_stream` created the stream, and its owner has been dropped.
        let _ = self.within(|_| self.check(unsafe { (self.api.free_stream)(stream_of(stream)) }));
    }

    fn synchronise_stream(&self, stream: StreamHandle) -> Outcome<()> {
        // SAFETY: the stream belongs to this context.
        self.within(|_| self.check(unsafe { (self.api.synchronise_stream)(stream_of(stream)) }))
    }

    fn synchronise(&self) -> Outcome<()> {
        // SAFETY: the function has no preconditions.
        self.within(|_| self.check(unsafe { (self.api.synchronise)() }))
    }

    fn record(&self, stream: StreamHandle) -> Outcome<EventHandle> {
        const NO_TIMING: c_uint = 2;
        self.within(|_| {
            let mut event: CUevent = null_mut();
            // SAFETY: `new_event` writes the event to `event`, and the stream belongs to this context.
            unsafe {
                self.check((self.api.new_event)(&mut event, NO_TIMING))?;
                self.check((self.api.record)(event, stream_of(stream))).inspect_err(|_| {
                    (self.api.free_event)(event);
                })?;
            }
            Ok(EventHandle(event as u64))
        })
    }

    fn is_past(&self, event: EventHandle) -> Outcome<bool> {
        // SAFETY: `record` created the event.
        self.within(|_| match unsafe { (self.api.query)(event_of(event)) } {
            0 => Ok(true),
            NOT_READY => Ok(false),
            code => Err(self.fault(code)),
        })
    }

    fn wait(&self, event: EventHandle) -> Outcome<()> {
        // SAFETY: `record` created the event.
        self.within(|_| self.check(unsafe { (self.api.wait)(event_of(event)) }))
    }

    fn order(&self, stream: StreamHandle, event: EventHandle) -> Outcome<()> {
        // SAFETY: the stream belongs to this context, and `record` created the event.
        self.within(|_| self.check(unsafe { (self.api.order)(stream_of(stream), event_of(event), 0) }))
    }

    fn free_event(&self, event: EventHandle) {
        // SAFETY: `record` created the event, and its owner has been dropped.
        let _ = self.within(|_| self.check(unsafe { (self.api.free_event)(event_of(event)) }));
    }
}
