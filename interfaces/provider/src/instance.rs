//! An instance of the provider belongs to a library context. It contains the resources, and the worker that computes keystream
//! ahead.

use std::ffi::OsString;
use std::sync::Arc;

use crate::ahead::KeystreamPool;
use crate::libcrypto::core::Core;
use crate::resources::Resources;

/// An instance of the provider in one library context.
pub(crate) struct Instance {
    pub(crate) resources: Arc<Resources>,
    /// The worker that computes keystream ahead; `None` if no keystream is computed ahead.
    pub(crate) keystream_pool: Option<KeystreamPool>,
}

impl Instance {
    /// Reads the settings and chooses a kernel.
    ///
    /// # Errors
    /// A message about a wrong setting in the configuration file.
    pub(crate) fn new(
        core: Core,
        environment: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Box<Instance>, String> {
        let resources = Resources::new(core, environment)?;
        let keystream_pool = resources.computes_ahead().then(KeystreamPool::default);
        Ok(Box::new(Instance { resources, keystream_pool }))
    }

    /// Called when the provider is unloaded: ends the background work and writes the totals to the trace.
    pub(crate) fn shut_down(&self) {
        self.keystream_pool.iter().for_each(KeystreamPool::close);
        self.resources.write_totals();
    }
}
