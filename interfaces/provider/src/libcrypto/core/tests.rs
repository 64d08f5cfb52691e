use super::*;

impl Core {
    /// A core without any function.
    pub(crate) fn none() -> Core {
        Core { handle: null(), get_params: None, new_error: None, set_error_debug: None, vset_error: None }
    }
}
