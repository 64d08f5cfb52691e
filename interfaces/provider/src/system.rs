//! Uses the operating system without side effects on the program that has loaded this module.
//!
//! | module | contents |
//! |---|---|
//! | `descriptor` | writing the trace and messages |
//! | `standard` | the files of standard output and standard error; messages |
//! | `process` | detection of forks, and handlers at the end of the process |
//! | `thread` | the provider's threads; blocking of signals |
//! | `object` | allocation of values whose memory is zeroed before it is freed |
//! | `stack` | wiping of the stack |

pub(crate) mod descriptor;
pub(crate) mod object;
pub(crate) mod process;
pub(crate) mod stack;
pub(crate) mod standard;
pub(crate) mod thread;
