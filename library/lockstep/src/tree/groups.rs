//! Many files with one key, for programs other than the command, which may use several machines: a [`Plan`] lists the files and
//! assigns the outputs, and a [`Group`] processes some of the files, in this process or in another process that has access to the
//! same folders.
//!
//! Names, checks and comparisons are the same as in `lockstep encrypt -k -r -O` and `lockstep decrypt -k -r -O`. Nothing is
//! printed, and no signal is handled.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use lockstep_core::share::lock;

use super::clash::{self, StoredNames};
use super::existing::unknown;
use super::inputs::{Inputs, Place, has_trailing_slash};
use super::plan::assign;
use super::write::{Writer, by_length, create_places, make_output};
use super::{Advice, Direction, Existing, Operation, Options, Pair};
use crate::cobblestone::{FileKey, ReadAt, plaintext_len};
use crate::engine::Engine;
use crate::envelope::Envelope;
use crate::error::{Error, Result, copy, ensure, failed};
use crate::file;
use crate::folder::Folder;
use crate::output::{OnExisting, Trials, remove_abandoned};

const ADVICE: Advice = Advice {
    existing: "keep those that are up to date with resume=True, or replace them with overwrite=True",
    unknown: "overwrite=True replaces it",
    same_output: "process them in separate calls",
    name: "decrypt it by itself, with decrypt_file",
};

/// The position of the commitment in an encrypted file.
const COMMITMENT_AT: u64 = 24;

/// The action for outputs that exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfExists {
    /// The plan fails.
    Refuse,
    /// [`Group::process`] compares each existing output with its input.
    Resume,
    /// They are replaced.
    Replace,
}

/// A file to process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedFile {
    /// An absolute path: the folder that was given, or the folder of the file that was given. A symbolic link is
    /// followed only if the path ends with a slash.
    pub root: PathBuf,
    /// The path of the input below `root`. No symbolic link in it is followed.
    pub input: PathBuf,
    /// The path of the output below the output folder. No symbolic link in it is followed.
    pub output: PathBuf,
    /// Length of the input in bytes, when it was listed.
    pub len: u64,
}

/// All files of a call, with their outputs.
#[derive(Debug)]
pub struct Plan {
    /// The files, without those that are skipped.
    pub files: Vec<PlannedFile>,
    /// Symbolic links and other files that are skipped, with the reason.
    pub skipped: Vec<(PathBuf, &'static str)>,
    /// Files and folders that cannot be processed.
    pub failed: Vec<(PathBuf, Error)>,
    /// Encrypted files of earlier calls whose inputs do not exist any more, as paths below the output folder. With
    /// [`IfExists::Refuse`] and with decryption, they are not searched for.
    pub without_input: Vec<PathBuf>,
    output: PathBuf,
    places: Vec<Place>,
    resumes: bool,
    sync: bool,
}

impl Plan {
    /// Lists files and the content of folders, assigns the outputs below the folder `output`, and checks them. Nothing
    /// is written, except for an empty file that is removed again.
    ///
    /// # Errors
    /// If an input does not exist; if the folders contain no file to process; if two inputs have the same output; if an
    /// output is an input; if an output exists with [`IfExists::Refuse`]; if the output folder is an input, or cannot be
    /// written to.
    pub fn new(
        direction: Direction,
        inputs: &[PathBuf],
        output: &Path,
        existing: IfExists,
        sync: bool,
    ) -> Result<Plan> {
        let (resume, force) = (existing == IfExists::Resume, existing == IfExists::Replace);
        let options = Options {
            output_dir: output,
            recursive: true,
            resume,
            force,
            sync,
            delete: false,
            protected: Vec::new(),
            advice: &ADVICE,
            stream: crate::Options::default(),
        };
        // The listing below treats the path `-` as standard input, so `./-` replaces it.
        let named = |path: &PathBuf| if path.as_os_str() == "-" { "./-".into() } else { path.clone() };
        let given: Vec<_> = inputs.iter().map(named).collect();
        let (_, found, leftovers) = assign(&given, direction, &options, &())?;
        let Inputs { jobs, places, skipped, failed, .. } = found;
        let files = jobs.into_iter().map(|job| {
            let root = if job.root.path.as_os_str().is_empty() { Path::new("./") } else { &job.root.path };
            let root = std::path::absolute(root).map_err(Error::file("find", root))?;
            Ok(PlannedFile { root, input: job.input, output: job.output, len: job.len })
        });
        let files = files.collect::<Result<_>>()?;
        let without_input = leftovers.paths().map(Path::to_owned).collect();
        let output = output.to_owned();
        Ok(Plan { files, skipped, failed, without_input, output, places, resumes: resume, sync })
    }

    /// Creates the output folder and its planned subfolders. With [`IfExists::Resume`], removes the temporary files that killed
    /// processes have left in them.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn create_folders(&self) -> Result<()> {
        let output = make_output(&self.output, self.sync)?;
        let how = (self.sync, self.resumes);
        create_places(&output, &self.output, &self.places, how, |_, error| Err(error)).map(drop)
    }

    /// Removes the temporary files that killed processes of this user have left in the output folders. Files of running
    /// processes are locked and are kept.
    pub fn remove_abandoned(&self) {
        let Ok(output) = Folder::open(&self.output, true) else { return };
        for place in self.places.iter().filter(|place| !place.is_refused) {
            // A file that cannot be removed does no harm.
            let _ = output.open_below(&place.path).map(|folder| remove_abandoned(&folder));
        }
    }
}

/// A file whose output is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Processed {
    /// True if the output was complete before.
    pub is_up_to_date: bool,
    /// Length of the plain file in bytes.
    pub plaintext_len: u64,
    /// Length of the encrypted file in bytes.
    pub ciphertext_len: u64,
    /// The commitment of the encrypted file. It depends on the key, the context and the salt, which is random in each
    /// encryption. Therefore each encrypted file that has this commitment, and that the key opens, is a copy of this file.
    pub commitment: [u8; 32],
}

/// The settings for files that are processed together.
pub struct Group {
    /// The engine. The number of files that are processed at the same time is at most its number of threads.
    pub engine: Engine,
    /// Whether the files are encrypted or decrypted.
    pub direction: Direction,
    /// The key of all files.
    pub key: FileKey,
    /// The context of all files.
    pub context: Vec<u8>,
    /// The output folder.
    pub output: PathBuf,
    /// Replace outputs that exist, whatever they contain. If this is false, an existing output is kept if it is up to
    /// date, and replaced if it comes from an earlier version of the input. If neither is certain, the file fails.
    pub replace: bool,
    /// Put each output on stable storage before it counts as done.
    pub sync: bool,
}

impl Group {
    /// Processes files of a [`Plan`]. If a commitment is given with an encrypted input, the input must contain this commitment. The
    /// results are in the order of the files. The failure of a file does not affect the other files.
    pub fn process(
        &self,
        files: &[(PlannedFile, Option<[u8; 32]>)],
        options: crate::Options<'_>,
    ) -> Vec<Result<Processed>> {
        let output = match Folder::open(&self.output, true) {
            Ok(folder) => folder,
            Err(error) => {
                let failure = || Error::file("open the output folder", &self.output)(copy(&error));
                return files.iter().map(|_| Err(failure())).collect();
            }
        };
        let (output_dir, sync, trials) = (&*self.output, self.sync, Trials::default());
        let writer = Writer { operation: self, host: &(), output: &output, output_dir, sync, trials };
        let work = Work { group: self, stored: Mutex::default(), writer, options };
        let threads = self.engine.threads();
        let process =
            |(file, expected): &(_, Option<_>), threads| work.process(file, expected.as_ref(), threads);
        by_length(files, |(file, _)| file.len, (threads, threads), process)
    }

    fn describe(&self, input: &File, output: &File, is_up_to_date: bool) -> Result<Processed> {
        let encrypted = if self.direction == Direction::Encrypt { output } else { input };
        let ciphertext_len = encrypted.metadata().map_err(Error::Read)?.len();
        let plaintext_len = plaintext_len(ciphertext_len)?;
        Ok(Processed { is_up_to_date, plaintext_len, ciphertext_len, commitment: commitment(encrypted)? })
    }
}

struct Work<'a> {
    group: &'a Group,
    /// The names that output folders store. Each folder is listed once, unless a name is not found.
    stored: Mutex<HashMap<PathBuf, StoredNames>>,
    writer: Writer<'a>,
    options: crate::Options<'a>,
}

impl Work<'_> {
    fn process(&self, file: &PlannedFile, expected: Option<&[u8; 32]>, threads: usize) -> Result<Processed> {
        let path = self.group.output.join(&file.output);
        let write = |existing: OnExisting| -> Result<Processed> {
            let input_path = file.root.join(&file.input);
            let options = crate::Options { max_threads: Some(threads), ..self.options };
            let input = self.open(file, expected)?;
            let describe = |output: &File, _| self.group.describe(&input, output, false);
            let written = self.writer.write(&input, &input_path, &file.output, existing, options, describe);
            Ok(written?.0)
        };
        match write(if self.group.replace { OnExisting::FailByLookup } else { OnExisting::Fail }) {
            // The output exists. Another process may have created it after the plan was made, for example in an earlier attempt at
            // this file.
            Err(Error::Exists { .. }) => {}
            done => return done,
        }
        self.check_stored(&file.output, &path)?;
        if self.group.replace {
            return write(OnExisting::Replace);
        }
        let input = self.open(file, expected)?;
        let Ok(existing) = self.writer.output.open_file(&file.output) else {
            return Err(unknown(&path, "is not a file that can be read", &ADVICE));
        };
        let pair = Pair::of(&input, &existing).map_err(Error::file("look at", &path))?;
        match self.group.compare(&pair)? {
            Existing::UpToDate => self.group.describe(&input, &existing, true),
            Existing::Outdated => write(OnExisting::Replace),
            Existing::Unknown(why) => Err(unknown(&path, why, &ADVICE)),
        }
    }

    /// Returns an error if the output folder stores an existing output under a name that differs from the planned name, for example
    /// in case.
    fn check_stored(&self, relative: &Path, path: &Path) -> Result<()> {
        let (parent, name) = (relative.parent().unwrap_or(Path::new("")), relative.file_name());
        let mut folders = lock(&self.stored);
        if !folders.get(parent).is_some_and(|names| names.names.contains(name.unwrap_or_default())) {
            let folder = self.writer.output.open_below(parent);
            let folder = folder.map_err(Error::file("open the folder of", path))?;
            if let Some(stored) = clash::check(&folder, path)? {
                folders.insert(parent.to_owned(), stored);
            }
        }
        Ok(())
    }

    fn open(&self, file: &PlannedFile, expected: Option<&[u8; 32]>) -> Result<File> {
        let path = file.root.join(&file.input);
        let root = Folder::open(&file.root, has_trailing_slash(&file.root));
        let opened = root.and_then(|root| root.open_file(&file.input)).map_err(Error::file("open", &path))?;
        let has_envelope =
            self.group.direction == Direction::Decrypt && Envelope::read_file(&opened)?.is_some();
        let what = "the file is encrypted to recipients or with a passphrase: decrypt it with decrypt_file";
        ensure(!has_envelope, || failed(what))?;
        if let Some(expected) = expected
            && commitment(&opened)? != *expected
        {
            let message = "the file is not the one that the manifest lists: it was replaced or damaged";
            return Err(Error::NotAuthentic(message.into()));
        }
        Ok(opened)
    }
}

/// Reads the commitment of an encrypted file.
fn commitment(encrypted: &File) -> Result<[u8; 32]> {
    let mut bytes = [0; 32];
    let read = ReadAt::read_exact_at(encrypted, &mut bytes, COMMITMENT_AT);
    read.map(|()| bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            Error::NotAuthentic("the file is too short for an encrypted file: it was cut off".into())
        }
        _ => Error::Read(error),
    })
}

/// Encryption or decryption with the key of the group.
impl Operation for Group {
    fn direction(&self) -> Direction {
        self.direction
    }

    fn compare(&self, pair: &Pair<'_>) -> Result<Existing> {
        match self.direction {
            Direction::Encrypt => Ok(pair.encrypted(&self.engine, &self.key, &self.context)),
            Direction::Decrypt => pair.decrypted(),
        }
    }

    fn process(
        &self,
        input: &File,
        output: &mut (dyn Write + Send),
        options: crate::Options<'_>,
    ) -> Result<u64> {
        let Group { engine, key, context, .. } = self;
        let summary = match self.direction {
            Direction::Encrypt => file::encrypt_open_file(engine, key, context, input, output, options),
            Direction::Decrypt => file::decrypt_open_file(engine, key, context, input, output, options),
        };
        Ok(summary?.plaintext_len)
    }
}
