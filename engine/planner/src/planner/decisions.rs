//! The record of the planner's choices, for display.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::candidates::{Candidate, Wanted};
use crate::timing::Shape;
use lockstep_core::backend::{DeviceId, KernelId};
use lockstep_core::key::KeySize;
use lockstep_core::work::Operation;

/// A candidate for some work.
#[derive(Debug, Clone)]
pub struct Considered {
    /// The device.
    pub device: DeviceId,
    /// The kernel of the device.
    pub kernel: &'static str,
    /// The estimated time of the work in nanoseconds.
    pub ns: f64,
    /// True if the time is based on measurements, false if the device states it.
    pub is_measured: bool,
    /// The reason, if the candidate has failed its self-test, its device has failed too often, or the CPU repeats its work.
    pub passed_over: Option<String>,
    /// True for the chosen candidate.
    pub is_chosen: bool,
}

/// The choice of one kernel for calls of the same kind and of similar size.
#[derive(Debug, Clone)]
pub struct Decision {
    /// The operation.
    pub operation: Operation,
    /// The size of the keys.
    pub key: KeySize,
    /// The shape of the first call.
    pub shape: Shape,
    /// The number of calls.
    pub calls: u64,
    /// The total bytes of the calls.
    pub bytes: u64,
    /// The candidates for the first call. The chosen candidate is marked.
    pub considered: Vec<Considered>,
}

/// Operation, key size, binary logarithm of the bytes, whether there are several messages, device, and kernel.
type Kind = (Operation, KeySize, u32, bool, usize, KernelId);

#[derive(Default)]
pub(super) struct Decisions(Mutex<BTreeMap<Kind, Decision>>);

impl Decisions {
    pub(super) fn record(
        &self,
        Wanted { operation, key, shape, .. }: Wanted,
        chosen: &Candidate,
        considered: impl FnOnce() -> Vec<Considered>,
    ) {
        let (size, is_batch) = ((shape.bytes + 1).ilog2(), shape.messages > 1);
        let kind = (operation, key, size, is_batch, chosen.entry, chosen.kernel);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let decision = all.entry(kind).or_insert_with(|| {
            let considered = considered();
            Decision { operation, key, shape, calls: 0, bytes: 0, considered }
        });
        decision.calls += 1;
        decision.bytes += shape.bytes as u64;
    }

    pub(super) fn all(&self) -> Vec<Decision> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}
