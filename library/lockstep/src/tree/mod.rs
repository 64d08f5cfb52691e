//! Many files in one call: files and folders, on all cores.
//!
//! `inputs` lists the files and names their outputs, `plan` and `survey` check them in advance, and `run` processes the files.
//! Paths below folders are opened without following symbolic links. A [`Run`] does all of this in one process. A [`Plan`] and its
//! [`Group`]s distribute the files of one key to several processes.

mod clash;
mod existing;
mod groups;
mod inputs;
mod leftovers;
mod plan;
mod run;
mod survey;
#[cfg(test)]
mod tests;
mod write;

use std::fs::File;
use std::io::Write;
use std::path::Path;

pub use self::existing::{Existing, Pair};
pub use self::groups::{Group, IfExists, Plan, PlannedFile, Processed};
pub use self::run::{Outcome, Run};
pub use crate::aead::Direction;
pub use crate::error::{Error, Result};
use crate::output::Sparse;

/// The operation on each file.
pub trait Operation: Sync {
    /// Whether the files are encrypted or decrypted.
    fn direction(&self) -> Direction;

    /// Whether new outputs have holes.
    fn sparse(&self) -> Sparse {
        Sparse::default()
    }

    /// Compares an existing output with its input.
    ///
    /// # Errors
    /// If the input or the output cannot be read.
    fn compare(&self, pair: &Pair<'_>) -> Result<Existing>;

    /// True if a file is certainly an output of this operation. Called for outputs whose inputs do not exist any more.
    fn is_own(&self, _output: &File) -> bool {
        false
    }

    /// Reads the whole input and writes the whole output; returns the number of plaintext bytes.
    ///
    /// # Errors
    /// All errors of encryption and decryption. The output is kept if [`Error::keeps_output`] is true.
    fn process(
        &self,
        input: &File,
        output: &mut (dyn Write + Send),
        options: crate::Options<'_>,
    ) -> Result<u64>;
}

/// The functions by which a program catches signals and shows progress during a run. By default, they do nothing.
pub trait Host: Sync {
    /// Called before a file is created. The returned value is dropped after the file got its final name or was removed.
    fn guard(&self) -> Box<dyn Send> {
        Box::new(())
    }

    /// Called with the number of further bytes of input that were processed.
    fn advance(&self, _bytes: u64) {}

    /// Called after each file, even if it has failed.
    fn file_done(&self) {}
}

impl Host for () {}

/// The options of a run.
#[derive(Debug)]
pub struct Options<'a> {
    /// The folder for the outputs. It is created if it is missing.
    pub output_dir: &'a Path,
    /// Process the content of folders.
    pub recursive: bool,
    /// Skip outputs that are up to date.
    pub resume: bool,
    /// Replace existing outputs.
    pub force: bool,
    /// Put each output on stable storage before it counts as done.
    pub sync: bool,
    /// Delete outputs without input.
    pub delete: bool,
    /// Files that no output may replace, each with a description.
    pub protected: Vec<(&'a str, &'a Path)>,
    /// The remedies in messages.
    pub advice: &'a Advice,
    /// The options for the encryption or decryption of each file. The run itself sets the progress function and the number of
    /// threads. The flag [`crate::Options::interrupt`] stops the whole run.
    pub stream: crate::Options<'a>,
}

/// The remedies in error messages: options of a command, or arguments of a call.
#[derive(Debug)]
pub struct Advice {
    /// For an output that exists before the work starts.
    pub existing: &'static str,
    /// For an output that exists and that is not known to come from its input.
    pub unknown: &'static str,
    /// For two inputs with the same output.
    pub same_output: &'static str,
    /// For a file to decrypt whose name does not end in `.enc`.
    pub name: &'static str,
}
