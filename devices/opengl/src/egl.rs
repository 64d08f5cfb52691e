//! libEGL, its devices, and contexts without a window. libEGL is opened at run time.
#![allow(unsafe_code, reason = "functions of libEGL")]

use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;

use khronos_egl as egl;
use lockstep_gpu_host::may_have_gpu;

type Egl = egl::DynamicInstance<egl::EGL1_4>;

// Constants of EGL_EXT_platform_base, EGL_EXT_device_query, EGL_EXT_platform_device and EGL_MESA_platform_surfaceless.
const PLATFORM_DEVICE: u32 = 0x313F;
const PLATFORM_SURFACELESS: u32 = 0x31DD;
const DEVICE_DRM_NODE: egl::Int = 0x3377;
const DEVICE_DRM_MASTER: egl::Int = 0x3233;

/// Maximum number of devices that are listed.
const MOST_DEVICES: usize = 64;

type GetPlatformDisplay = extern "system" fn(u32, *mut c_void, *const egl::Int) -> egl::EGLDisplay;
type QueryDevices = extern "system" fn(egl::Int, *mut *mut c_void, *mut egl::Int) -> egl::Boolean;
type QueryDeviceString = extern "system" fn(*mut c_void, egl::Int) -> *const c_char;

/// The opened library libEGL.
#[derive(Clone, Copy)]
pub(crate) struct Library {
    egl: &'static Egl,
}

/// A device or platform on which contexts can be opened.
#[derive(Clone)]
pub(crate) struct Place {
    /// The device. `None` for the surfaceless platform, on which Mesa chooses the device.
    device: Option<DevicePointer>,
    /// True if the device is software.
    pub(crate) is_software: bool,
    /// For tests: true if OpenGL ES is used even if OpenGL is available.
    pub(crate) is_embedded: bool,
    /// For tests: the largest width and height of textures, in place of the limit that the driver states.
    pub(crate) largest: Option<usize>,
    /// The device file, such as `/dev/dri/renderD128`; empty if it is unknown.
    pub(crate) node: String,
}

/// A device of EGL. It is valid for as long as libEGL is open, which is until the process ends.
#[derive(Clone, Copy)]
struct DevicePointer(*mut c_void);

// SAFETY: EGL's functions for devices may be called by any thread (EGL 1.5, 2.2).
unsafe impl Send for DevicePointer {}
// SAFETY: EGL's functions for devices may be called by several threads (EGL 1.5, 2.2).
unsafe impl Sync for DevicePointer {}

impl Place {
    /// True if the driver may be software. If EGL lists no devices, Mesa may choose software even if there is a GPU.
    pub(crate) fn may_be_software(&self) -> bool {
        self.is_software || self.device.is_none()
    }

    /// The PCI address of the device, such as `0000:01:00.0`; empty if it is unknown.
    pub(crate) fn pci_address(&self) -> String {
        let Some(name) = self.node.strip_prefix("/dev/dri/") else { return String::new() };
        // On Linux, this is a link to the folder of the PCI device. The name of the folder is the address.
        let device = std::fs::read_link(format!("/sys/class/drm/{name}/device")).unwrap_or_default();
        device.file_name().map_or_else(String::new, |address| address.to_string_lossy().into_owned())
    }
}

impl Library {
    /// Opens libEGL.so.1. `None` if this machine does not have it.
    pub(crate) fn open() -> Option<Library> {
        // The library is opened once and never closed, because pointers to its devices and functions are kept.
        static OPENED: OnceLock<Option<Egl>> = OnceLock::new();
        // SAFETY: a library of this name implements EGL.
        let egl = OPENED.get_or_init(|| unsafe { Egl::load_required() }.ok()).as_ref()?;
        Some(Library { egl })
    }

    /// The devices of this machine. If libEGL does not list devices, returns the surfaceless platform.
    pub(crate) fn places(&self) -> Vec<Place> {
        let listed = self.devices();
        if !listed.is_empty() {
            return listed;
        }
        vec![Place {
            device: None,
            is_software: !may_have_gpu(),
            is_embedded: false,
            largest: None,
            node: String::new(),
        }]
    }

    fn devices(&self) -> Vec<Place> {
        let (Some(query), Some(text)) = (
            self.egl.get_proc_address("eglQueryDevicesEXT"),
            self.egl.get_proc_address("eglQueryDeviceStringEXT"),
        ) else {
            return Vec::new();
        };
        // SAFETY: these are the types of the functions in EGL_EXT_device_query.
        let (query, text) = unsafe {
            (
                std::mem::transmute::<extern "system" fn(), QueryDevices>(query),
                std::mem::transmute::<extern "system" fn(), QueryDeviceString>(text),
            )
        };
        let mut devices = [std::ptr::null_mut(); MOST_DEVICES];
        let mut count = 0;
        if query(MOST_DEVICES as egl::Int, devices.as_mut_ptr(), &raw mut count) != egl::TRUE {
            return Vec::new();
        }
        let string = |device, name| {
            let text = text(device, name);
            // SAFETY: EGL returns null or a string that is valid for as long as the device.
            let text = (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) });
            text.map_or_else(String::new, |text| text.to_string_lossy().into_owned())
        };
        let place = |&device: &*mut c_void| {
            let extensions = string(device, egl::EXTENSIONS);
            let has = |name: &str| extensions.split(' ').any(|extension| extension == name);
            let node = if has("EGL_EXT_device_drm_render_node") {
                string(device, DEVICE_DRM_NODE)
            } else if has("EGL_EXT_device_drm") {
                string(device, DEVICE_DRM_MASTER)
            } else {
                String::new()
            };
            Place {
                device: Some(DevicePointer(device)),
                is_software: has("EGL_MESA_device_software"),
                is_embedded: false,
                largest: None,
                node,
            }
        };
        let count = usize::try_from(count).unwrap_or(0).min(MOST_DEVICES);
        devices[..count].iter().map(place).collect()
    }

    /// Opens a context and makes it current on this thread.
    ///
    /// # Errors
    /// A text with the problem and the remedy.
    pub(crate) fn context(&self, place: &Place) -> Result<Context, String> {
        let find = self.egl.get_proc_address("eglGetPlatformDisplayEXT");
        let find = find.ok_or("libEGL cannot work without a window: update the driver")?;
        // SAFETY: this is the type of the function in EGL_EXT_platform_base.
        let find = unsafe { std::mem::transmute::<extern "system" fn(), GetPlatformDisplay>(find) };
        let (platform, native) = match place.device {
            Some(device) => (PLATFORM_DEVICE, device.0),
            None => (PLATFORM_SURFACELESS, std::ptr::null_mut()),
        };
        let display = find(platform, native, [egl::NONE].as_ptr());
        if display == egl::NO_DISPLAY {
            return Err("libEGL has no display for it: install the GPU's driver".into());
        }
        // SAFETY: the display comes from EGL.
        let display = unsafe { egl::Display::from_ptr(display) };
        let failed = |error: egl::Error| {
            let reason = error.to_string();
            format!("its driver does not start: {}; update the driver", reason.trim_end_matches('.'))
        };
        self.egl.initialize(display).map_err(failed)?;
        for interface in [Interface::Desktop, Interface::Embedded] {
            if place.is_embedded && interface == Interface::Desktop {
                continue;
            }
            if let Ok(context) = self.context_of(display, interface) {
                let context = Context { driver: *self, display, context, interface };
                // If the context cannot be made current, it is closed.
                if self.egl.make_current(display, None, None, Some(context.context)).is_ok() {
                    return Ok(context);
                }
            }
        }
        Err("it has neither OpenGL 3.3 nor OpenGL ES 3.0: update the driver".into())
    }

    fn context_of(&self, display: egl::Display, interface: Interface) -> Result<egl::Context, egl::Error> {
        let (api, renderable, version) = match interface {
            Interface::Desktop => (
                egl::OPENGL_API,
                egl::OPENGL_BIT,
                [
                    egl::CONTEXT_MAJOR_VERSION,
                    3,
                    egl::CONTEXT_MINOR_VERSION,
                    3,
                    egl::CONTEXT_OPENGL_PROFILE_MASK,
                    egl::CONTEXT_OPENGL_CORE_PROFILE_BIT,
                    egl::NONE,
                ],
            ),
            Interface::Embedded => (
                egl::OPENGL_ES_API,
                egl::OPENGL_ES3_BIT,
                [egl::CONTEXT_MAJOR_VERSION, 3, egl::NONE, egl::NONE, egl::NONE, egl::NONE, egl::NONE],
            ),
        };
        self.egl.bind_api(api)?;
        let wanted = [egl::SURFACE_TYPE, egl::PBUFFER_BIT, egl::RENDERABLE_TYPE, renderable, egl::NONE];
        let config = self.egl.choose_first_config(display, &wanted)?.ok_or(egl::Error::BadConfig)?;
        self.egl.create_context(display, config, None, &version)
    }
}

/// The programming interface of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interface {
    /// OpenGL 3.3, core profile.
    Desktop,
    /// OpenGL ES 3.0.
    Embedded,
}

/// A context, current on the thread that opened it.
pub(crate) struct Context {
    driver: Library,
    display: egl::Display,
    context: egl::Context,
    pub(crate) interface: Interface,
}

impl Context {
    /// The address of a function of OpenGL; null if there is none.
    pub(crate) fn function(&self, name: &str) -> *const c_void {
        self.driver.egl.get_proc_address(name).map_or(std::ptr::null(), |function| function as *const c_void)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let egl = self.driver.egl;
        // The display stays initialised, because other contexts of this process may use it.
        let _ = egl.make_current(self.display, None, None, None);
        let _ = egl.destroy_context(self.display, self.context);
    }
}
