//! Many files with one key, for programs other than the command, which may use several machines: a [`Plan`] lists the
//! files and assigns the outputs, and a [`Group`] processes some of the files, in this process or in another one that
//! sees the same folders.
//!
//! Names, checks and comparisons are those of `lockstep encrypt -k -r -O` and `lockstep decrypt -k -r -O`. Nothing is
//! printed, and no signal is handled.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use lockstep::{Engine, Envelope, FileKey, ReadAt, file, plaintext_len, quoted};

use super::folder::Folder;
use super::inputs::{Inputs, Place, has_trailing_slash};
pub use super::names::Direction;
use super::run::OnExisting;
use super::{Advice, Existing, Operation, Options, Times, clash, plan, run};
use crate::error::{Error, Result, failed};
use crate::input::Input;

const ADVICE: Advice = Advice {
    existing: "keep those that are up to date with resume=True, or replace them with overwrite=True",
    unknown: "overwrite=True replaces it",
    same_output: "process them in separate calls",
    name: "decrypt it by itself, with decrypt_file",
};

/// The position of the commitment in an encrypted file.
const COMMITMENT_AT: u64 = 24;

/// What a plan does if outputs exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfExists {
    /// The plan fails.
    Refuse,
    /// [`Group::process`] compares each of them with its input.
    Resume,
    /// They are replaced.
    Replace,
}

/// Why a plan or a file has failed.
#[derive(Debug)]
pub struct GroupError {
    /// What happened, and what to do about it. It contains no secret.
    pub message: String,
    /// True if the data are not authentic, or if the key or the context is wrong.
    pub is_not_authentic: bool,
    /// The number of the error of the system, if there was one.
    pub errno: Option<i32>,
}

impl From<Error> for GroupError {
    fn from(error: Error) -> GroupError {
        let errno = match &error {
            Error::Library(
                lockstep::Error::Read(source)
                | lockstep::Error::Write(source)
                | lockstep::Error::File { source, .. },
            ) => source.raw_os_error(),
            _ => None,
        };
        let is_not_authentic = error.exit_code() == crate::error::NOT_AUTHENTIC;
        // The advice of the command names its options.
        let message = match &error {
            Error::Library(library) => library.to_string(),
            other => other.to_string(),
        };
        GroupError { message, is_not_authentic, errno }
    }
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
    pub failed: Vec<(PathBuf, GroupError)>,
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
    ) -> std::result::Result<Plan, GroupError> {
        let options = Options {
            output_dir: output,
            recursive: true,
            resume: existing == IfExists::Resume,
            force: existing == IfExists::Replace,
            sync,
            delete: false,
            protected: Vec::new(),
            advice: &ADVICE,
        };
        // For the command, the path `-` is standard input.
        let given = inputs.iter().map(|path| match path.as_os_str() == "-" {
            true => PathBuf::from("./-"),
            false => path.clone(),
        });
        let given: Vec<_> = given.collect();
        let folder = match Folder::open(output, true) {
            Ok(folder) => Some(folder),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(Error::io("open the folder", output)(error).into()),
        };
        let id = folder.as_ref().map(Folder::id).transpose().map_err(Error::io("look at", output))?;
        let mut found = Inputs::find(&given, true, id)?;
        let (jobs, leftovers) = plan::assign(&mut found, direction, folder.as_ref(), &options)?;
        plan::check_writable(&options)?;
        let files = jobs.into_iter().map(|job| {
            let place = &found.places[job.input.place];
            let (root, input) = match (&place.root, &job.input.given) {
                (Some(root), _) => (root.path().to_owned(), place.relative().join(&job.input.name)),
                // The slash at the end means that a link is followed: the user has chosen it.
                (None, given) => {
                    let parent = given.as_deref().and_then(Path::parent);
                    let parent = parent.filter(|parent| !parent.as_os_str().is_empty());
                    (parent.unwrap_or(Path::new(".")).join(""), PathBuf::from(&job.input.name))
                }
            };
            let root = std::path::absolute(&root).map_err(Error::io("find", &root))?;
            Ok(PlannedFile { root, input, output: job.relative(&found.places), len: job.input.len })
        });
        Ok(Plan {
            files: files.collect::<Result<_>>()?,
            skipped: found.skipped,
            failed: found.failed.into_iter().map(|(path, error)| (path, error.into())).collect(),
            without_input: leftovers.paths().map(Path::to_owned).collect(),
            output: output.to_owned(),
            places: found.places,
            resumes: existing == IfExists::Resume,
            sync,
        })
    }

    /// Creates the output folder, and the folders in it. With [`IfExists::Resume`], removes the temporary files that
    /// killed processes have left in them.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn create_folders(&self) -> std::result::Result<(), GroupError> {
        let output = run::make_output(&self.output, self.sync);
        let output = output.map_err(Error::io("make the folder", &self.output))?;
        let mut made = HashSet::new();
        for place in self.places.iter().filter(|place| !place.is_refused) {
            if made.insert(&place.path) {
                let folder = run::create_place(&output, &self.output, place, self.sync)?;
                if self.resumes {
                    run::remove_abandoned_in(&folder);
                }
            }
        }
        Ok(())
    }

    /// Removes the temporary files that killed processes of this user have left in the output folders. Files of running
    /// processes are locked and are kept.
    pub fn remove_abandoned(&self) {
        let Ok(output) = Folder::open(&self.output, true) else { return };
        for place in self.places.iter().filter(|place| !place.is_refused) {
            if let Ok(folder) = output.open_below(&place.path) {
                run::remove_abandoned_in(&folder);
            }
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
    /// encryption. So an encrypted file that opens and has this commitment is this one.
    pub commitment: [u8; 32],
}

/// The settings for files that are processed together.
pub struct Group<'a> {
    /// The engine, whose number of threads is the number of files at the same time.
    pub engine: &'a Engine,
    /// What happens to the files.
    pub direction: Direction,
    /// The key of all files.
    pub key: &'a FileKey,
    /// The context of all files.
    pub context: &'a [u8],
    /// The output folder.
    pub output: &'a Path,
    /// Replace outputs that exist, whatever they contain. If this is false, an existing output is kept if it is up to
    /// date, and replaced if it comes from an earlier version of the input. If neither is certain, the file fails.
    pub replace: bool,
    /// Put each output on stable storage before it counts as done.
    pub sync: bool,
}

impl std::fmt::Debug for Group<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Group").field("direction", &self.direction).field("output", &self.output).finish()
    }
}

impl Group<'_> {
    /// Processes files of a [`Plan`], with the commitments that encrypted inputs must have, if they are known. The
    /// results are in the order of the files. The failure of a file does not affect the others.
    pub fn process(
        &self,
        files: &[(PlannedFile, Option<[u8; 32]>)],
        options: lockstep::Options<'_>,
    ) -> Vec<std::result::Result<Processed, GroupError>> {
        let output = match Folder::open(self.output, true) {
            Ok(folder) => folder,
            Err(error) => {
                let message = format!("cannot open the output folder {}: {error}", quoted(self.output));
                let errno = error.raw_os_error();
                let failure = || GroupError { message: message.clone(), is_not_authentic: false, errno };
                return files.iter().map(|_| Err(failure())).collect();
            }
        };
        let threads = self.engine.threads();
        let results: Vec<_> = files.iter().map(|_| Mutex::new(None)).collect();
        let stored = Stored::default();
        let process = |index: usize, threads: usize| {
            let (file, expected) = &files[index];
            let options = options.max_threads(threads);
            let done = Work { group: self, output: &output, stored: &stored, options }
                .process(file, expected.as_ref());
            *results[index].lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(done);
        };
        let (long, short): (Vec<_>, Vec<_>) = (0..files.len()).partition(|&i| files[i].0.len >= run::LONG);
        for index in long {
            process(index, threads);
        }
        run::in_parallel(threads, &short, |&index| process(index, 1));
        let results =
            results.into_iter().map(|result| result.into_inner().unwrap_or_else(|p| p.into_inner()));
        let unprocessed = || Err(failed("the file was not processed"));
        results.map(|result| result.unwrap_or_else(unprocessed).map_err(GroupError::from)).collect()
    }
}

/// The names that output folders store. Each folder is listed once, unless a name is not found.
#[derive(Default)]
struct Stored(Mutex<HashMap<PathBuf, HashSet<OsString>>>);

impl Stored {
    /// Returns an error if the name of an output that exists is stored in another form.
    fn check(&self, output: &Folder, relative: &Path, path: &Path) -> Result<()> {
        let (parent, name) = (relative.parent().unwrap_or(Path::new("")), relative.file_name());
        let mut folders = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let is_stored = |names: &HashSet<OsString>| name.is_some_and(|name| names.contains(name));
        if folders.get(parent).is_some_and(is_stored) {
            return Ok(());
        }
        let folder = output.open_below(parent).map_err(Error::io("open the folder of", path))?;
        let names: HashSet<_> =
            folder.names().map_err(Error::io("read the folder of", path))?.into_iter().collect();
        let is_stored = is_stored(&names);
        folders.insert(parent.to_owned(), names);
        if is_stored { Ok(()) } else { clash::check(&folder, path) }
    }
}

struct Work<'a> {
    group: &'a Group<'a>,
    output: &'a Folder,
    stored: &'a Stored,
    options: lockstep::Options<'a>,
}

impl Work<'_> {
    fn process(&self, file: &PlannedFile, expected: Option<&[u8; 32]>) -> Result<Processed> {
        let existing = if self.group.replace { OnExisting::FailByLookup } else { OnExisting::Fail };
        match self.write(file, expected, existing) {
            // The output exists. Another process may have created it meanwhile, for example in an earlier attempt at
            // this file.
            Err(Error::Library(lockstep::Error::Exists { .. })) => {}
            done => return done,
        }
        let path = self.group.output.join(&file.output);
        self.stored.check(self.output, &file.output, &path)?;
        if self.group.replace {
            return self.write(file, expected, OnExisting::Replace);
        }
        let input = self.open(file, expected)?;
        let Ok(existing) = self.output.open_file(&file.output) else {
            let name = quoted(&path);
            let advice = ADVICE.unknown;
            return Err(failed(format!(
                "the output {name} exists and is not a file that can be read: {advice}"
            )));
        };
        let looked = input.file().metadata().and_then(|input| Times::compare(&input, &existing.metadata()?));
        match self.compare(&input, &existing, looked.map_err(Error::io("look at", &path))?)? {
            Existing::UpToDate => self.describe(&input, &existing, true),
            Existing::Outdated => self.write(file, expected, OnExisting::Replace),
            Existing::Unknown(why) => {
                let (name, advice) = (quoted(&path), ADVICE.unknown);
                Err(failed(format!("the output {name} exists and {why}: {advice}")))
            }
        }
    }

    fn open(&self, file: &PlannedFile, expected: Option<&[u8; 32]>) -> Result<Input> {
        let path = file.root.join(&file.input);
        let root = Folder::open(&file.root, has_trailing_slash(&file.root));
        let opened = root.and_then(|root| root.open_file(&file.input)).map_err(Error::io("open", &path))?;
        if self.group.direction == Direction::Decrypt && Envelope::read_file(&opened)?.is_some() {
            return Err(failed(
                "the file is encrypted to recipients or with a passphrase: decrypt it with decrypt_file",
            ));
        }
        if let Some(expected) = expected
            && commitment(&opened)? != *expected
        {
            let message = "the file is not the one that the manifest lists: it was replaced or damaged";
            return Err(Error::NotAuthentic(message.into()));
        }
        Input::from_file(opened, &path)
    }

    fn write(
        &self,
        file: &PlannedFile,
        expected: Option<&[u8; 32]>,
        existing: OnExisting,
    ) -> Result<Processed> {
        let (input_path, path) = (file.root.join(&file.input), self.group.output.join(&file.output));
        let mut input = self.open(file, expected)?;
        let place = file.output.parent().unwrap_or(Path::new(""));
        let folder = self.output.make_folder(place, 0o777, self.group.sync);
        let folder = folder.map_err(Error::io("make the folder of", &path))?;
        let how = (existing, self.group.sync);
        let mut written = run::write(self, &mut input, &input_path, (folder, &path), how, self.options)?;
        let processed = self.describe(&input, written.as_file(), false)?;
        written.commit()?;
        Ok(processed)
    }

    fn describe(&self, input: &Input, output: &File, is_up_to_date: bool) -> Result<Processed> {
        let encrypted = match self.group.direction {
            Direction::Encrypt => output,
            Direction::Decrypt => input.file(),
        };
        let ciphertext_len = encrypted.metadata().map_err(lockstep::Error::Read)?.len();
        let plaintext_len = plaintext_len(ciphertext_len)?;
        Ok(Processed { is_up_to_date, plaintext_len, ciphertext_len, commitment: commitment(encrypted)? })
    }
}

/// Reads the commitment of an encrypted file.
fn commitment(encrypted: &File) -> Result<[u8; 32]> {
    let mut bytes = [0; 32];
    match ReadAt::read_exact_at(encrypted, &mut bytes, COMMITMENT_AT) {
        Ok(()) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(Error::NotAuthentic("the file is too short for an encrypted file: it was cut off".into()))
        }
        Err(error) => Err(lockstep::Error::Read(error).into()),
    }
}

impl Operation for Work<'_> {
    fn done(&self) -> &'static str {
        "processed"
    }

    fn direction(&self) -> Direction {
        self.group.direction
    }

    fn compare(&self, input: &Input, output: &File, times: Times) -> Result<Existing> {
        let Group { engine, key, context, .. } = self.group;
        match self.group.direction {
            Direction::Encrypt => Ok(Existing::encrypted(engine, key, context, input, output, times)),
            Direction::Decrypt => Existing::decrypted(input, output, times),
        }
    }

    fn is_own(&self, _output: &File) -> bool {
        false
    }

    fn process(
        &self,
        input: &mut Input,
        output: &mut (dyn Write + Send),
        options: lockstep::Options<'_>,
    ) -> Result<u64> {
        let Group { engine, key, context, .. } = self.group;
        let summary = match self.group.direction {
            Direction::Encrypt => {
                file::encrypt_open_file(engine, key, context, input.file(), output, options)
            }
            Direction::Decrypt => {
                file::decrypt_open_file(engine, key, context, input.file(), output, options)
            }
        };
        Ok(summary?.plaintext_len)
    }
}
