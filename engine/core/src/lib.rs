//! The contract between modes and devices: the work that modes submit, and the guarantees of devices.
//!
//! | module | holds |
//! |---|---|
//! | [`key`] | AES keys and their expanded forms |
//! | [`sbox`] | the S-box as a circuit, for key expansions and bitsliced kernels |
//! | [`data`] | host memory, page-locked memory, device memory; in place or not |
//! | [`work`] | passes, fused AEADs, segments, messages, tables in device memory, streams |
//! | [`backend`] | [`Backend`](backend::Backend), [`Device`](backend::Device), device memory, completions |
//! | [`names`], [`hardware`] | names of devices and kernels; identity of the hardware behind a device |
//! | [`chaining`] | how the state that links the segments of a message advances |
//! | [`gcm`], [`ocb`], [`xts`] | the parts of the definitions of GCM, OCB3 and XTS that kernels and modes share |
//! | [`lengths`] | the lengths that modes allow |
//! | [`share`] | segments cut into pieces for threads or devices |
//! | [`shown`] | text of users in messages, without keys |
//! | [`stack`], [`wiping`] | wiping of the stack, and of other memory |
//! | [`selftest`] | known-answer tests of kernels |
//! | [`error`] | the errors |
//!
//! This crate neither chooses nor measures devices, and it does not define how modes are composed of passes. Users reach it
//! through the module `hazmat` of the crate `lockstep`.
//!
//! # The contract of `submit`
//!
//! [`Device::submit`](backend::Device::submit) starts work and returns a [`Completion`](backend::Completion). The work ends, at
//! the latest, when [`Completion::wait`](backend::Completion::wait) returns.
//!
//! **Input.** The caller has checked the arguments: the length of a segment is a multiple of [`Pass::unit`](work::Pass::unit),
//! segments of XTS have a tweak, tags have a length that the mode allows, and input and output of a segment are disjoint or
//! the same memory. All keys of a call have the same size. The device makes the checks that depend on the device: it returns
//! [`Error::Unsupported`] for an operation that the kernel lacks and [`Error::OutOfReach`] for memory that it cannot access.
//! It never falls back to another kernel and never skips a segment.
//!
//! **Memory.** Borrowed host memory is accessed only inside `submit` and inside `wait`. A device with its own memory copies
//! input in `submit` and results in `wait`. A completion may therefore be dropped or leaked at any time without leaving a
//! dangling pointer. The work is then abandoned, and its results are lost. Page-locked and device memory is held by
//! reference and may be in use until the completion has been waited for or dropped.
//!
//! **Order.** Work on device memory is ordered by the stream of the [`Work`](work::Work): it starts after earlier work on that
//! stream and before later work on it. Work on host memory has no order; different threads may call `submit` at the same time.
//!
//! **Results.** After a successful `wait`, the output holds the result, every chaining state is the one with which the next
//! segment of the message must start (as defined by [`Pass`](work::Pass)), and every message of a fused AEAD has a status
//! other than [`Status::Pending`](work::Status::Pending). A wrong tag does not make the call fail: the message gets the
//! status [`AuthenticationFailed`](work::Status::AuthenticationFailed), and its output is zeroed. Tags are compared in
//! constant time.
//!
//! **Failure.** After an error from `submit` or `wait`, all output of the call is invalid, including in-place data. What a
//! device wrote before it failed must not be plaintext of a message whose tag was not checked. A device never panics on
//! input that this contract allows.
//!
//! **Secrets.** Expanded keys are stored by [`Key::prepared`] or in device memory, and are wiped. A kernel with
//! [`constant_time`](backend::KernelInfo::constant_time) has no branch and no address that depends on keys or data.
//!
//! # A minimal backend
//!
//! This backend has one device with one kernel. The kernel encrypts host memory in ECB mode by means of the reference
//! implementation:
//!
//! ```
//! use std::sync::Arc;
//!
//! use lockstep_core::backend::{
//!     Backend, Completion, Cost, Device, DeviceId, DeviceProperties, Discovery, KernelId, KernelInfo, Unit,
//! };
//! use lockstep_core::data::Data;
//! use lockstep_core::work::{Operation, Pass, Segment, Task, Work};
//! use lockstep_core::{Error, Key, KeySize, Result};
//!
//! struct Sample {
//!     kernels: [KernelInfo; 1],
//! }
//!
//! impl Default for Sample {
//!     fn default() -> Self {
//!         let kernel = KernelInfo {
//!             name: "sample/reference",
//!             description: "the reference implementation",
//!             // The implementation uses tables, so the kernel is used only by name.
//!             constant_time: false,
//!             missing: None,
//!         };
//!         Sample { kernels: [kernel] }
//!     }
//! }
//!
//! impl Device for Sample {
//!     fn id(&self) -> DeviceId {
//!         DeviceId { backend: "sample", unit: Unit::Only }
//!     }
//!
//!     fn description(&self) -> String {
//!         "sample, version 1".into()
//!     }
//!
//!     fn properties(&self) -> DeviceProperties {
//!         DeviceProperties::SOFTWARE
//!     }
//!
//!     fn kernels(&self) -> &[KernelInfo] {
//!         &self.kernels
//!     }
//!
//!     fn cost(&self, kernel: KernelId, operation: Operation, _: KeySize) -> Option<Cost> {
//!         let is_supported = kernel == KernelId(0) && operation == Operation::Pass(Pass::EcbEncrypt);
//!         // 100 ns a call and 0.001 GB/s.
//!         is_supported.then(|| Cost::new(100.0, 0.001))
//!     }
//!
//!     fn submit<'w, 'd: 'w>(&self, kernel: KernelId, work: Work<'w, 'd>) -> Result<Completion<'w>> {
//!         let operation = work.task.operation();
//!         let Task::Pass(Pass::EcbEncrypt, segments) = work.task else {
//!             return Err(operation.unsupported_by(self.kernels[usize::from(kernel.0)].name));
//!         };
//!         for segment in segments {
//!             let aes = lockstep_reference::Aes::new(segment.key.bytes());
//!             let mut data = segment.data.reborrow().into_host(self.id())?;
//!             let mut result = data.input().to_vec();
//!             for block in result.as_chunks_mut().0 {
//!                 *block = aes.encrypt(*block);
//!             }
//!             data.output().copy_from_slice(&result);
//!         }
//!         Ok(Completion::Done)
//!     }
//! }
//!
//! struct SampleBackend;
//!
//! impl Backend for SampleBackend {
//!     fn name(&self) -> &'static str {
//!         "sample"
//!     }
//!
//!     fn discover(&self) -> Discovery {
//!         Discovery { devices: vec![Arc::new(Sample::default())], missing: None }
//!     }
//! }
//!
//! // FIPS 197, appendix C.1.
//! let key = Key::new(&std::array::from_fn::<u8, 16, _>(|i| i as u8))?;
//! let mut data: [u8; 16] = std::array::from_fn(|i| 0x11 * i as u8);
//! let mut state = [0; 16];
//! let device = &SampleBackend.discover().devices[0];
//! let data_of_segment = Data::in_place(&mut data);
//! let mut segments = [Segment { key: &key, tweak: None, state: &mut state, data: data_of_segment }];
//! device.submit(KernelId(0), Task::Pass(Pass::EcbEncrypt, &mut segments).into())?.wait()?;
//! assert_eq!(data[..4], [0x69, 0xc4, 0xe0, 0xd8]);
//! # Ok::<(), Error>(())
//! ```
//!
//! The suite of the crate `lockstep-testkit` tests every kernel of a device against the reference implementation; the guide
//! `docs/adding-a-backend.md` names the remaining steps.
#![deny(unsafe_code)]

pub mod backend;
pub mod chaining;
pub mod data;
pub mod error;
pub mod gcm;
pub mod hardware;
mod host;
pub mod key;
pub mod launch;
pub mod lengths;
mod messages;
pub mod names;
pub mod ocb;
pub mod sbox;
pub mod selftest;
pub mod share;
pub mod shown;
pub mod stack;
mod tag;
pub mod wiping;
pub mod work;
pub mod xts;

pub use error::{Error, Result};
pub use key::{Block, Key, KeySize};
