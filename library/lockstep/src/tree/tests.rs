//! Runs on a simulated file system that ignores case, with an operation that copies files.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;

use super::inputs::{self, Inputs};
use super::*;
use crate::cobblestone::FileKey;
use crate::engine::Engine;
use crate::folder::sys::IGNORES_CASE;

/// Copies files: each output has the content of its input. `while_reading` is called with each input.
struct Copying<F>(F);

impl<F: Fn(&File) + Sync> Operation for Copying<F> {
    fn direction(&self) -> Direction {
        Direction::Encrypt
    }

    fn compare(&self, pair: &Pair<'_>) -> Result<Existing> {
        Ok(pair.own(pair.input_len == pair.output_len))
    }

    fn is_own(&self, _output: &File) -> bool {
        true
    }

    fn process(
        &self,
        mut input: &File,
        output: &mut (dyn Write + Send),
        _options: crate::Options<'_>,
    ) -> Result<u64> {
        let copied = std::io::copy(&mut input, output).map_err(Error::Write)?;
        (self.0)(input);
        Ok(copied)
    }
}

/// A folder whose subfolder [`IGNORES_CASE`] is the simulated file system. The inputs are outside of it.
struct Scene(TempDir);

impl Scene {
    fn new(inputs: &[(&str, &str)]) -> Scene {
        let scene = Scene(tempfile::tempdir().unwrap());
        fs::create_dir(scene.path(IGNORES_CASE)).unwrap();
        for (name, content) in inputs {
            let path = scene.path("in").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        // The outputs must be newer than the inputs. File systems update their clocks every 10 ms or more often.
        std::thread::sleep(std::time::Duration::from_millis(20));
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn output_dir(&self) -> PathBuf {
        self.path(IGNORES_CASE).join("out")
    }

    fn outputs(&self, folder: &str) -> Vec<(String, String)> {
        let Ok(entries) = fs::read_dir(self.output_dir().join(folder)) else { return Vec::new() };
        let mut found: Vec<_> = entries
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.path().is_file())
            .map(|entry| {
                (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap())
            })
            .collect();
        found.sort();
        found
    }

    /// Copies the inputs; returns the number of files that have failed.
    fn copy(&self, resume: bool, force: bool, while_reading: impl Fn(&File) + Sync) -> usize {
        self.run(&Copying(while_reading), resume, force, &())
    }

    fn run(&self, operation: &dyn Operation, resume: bool, force: bool, host: &dyn Host) -> usize {
        let output_dir = self.output_dir();
        let options = Options { resume, force, ..options(&output_dir) };
        let engine = engine();
        let mut run = Run::plan(&engine, operation, &[self.path("in")], &options, host).unwrap();
        run.prepare(|_, _| Ok::<_, Error>(Ok(()))).unwrap();
        run.process(host).unwrap();
        run.finish().failed.len()
    }
}

fn options(output_dir: &Path) -> Options<'_> {
    Options {
        output_dir,
        recursive: true,
        resume: false,
        force: false,
        sync: false,
        delete: false,
        protected: Vec::new(),
        advice: &Advice { existing: "", unknown: "", same_output: "", name: "" },
        stream: crate::Options::default(),
    }
}

fn engine() -> Engine {
    Engine::builder().device("cpu").threads(1).build().unwrap()
}

#[test]
fn no_output_replaces_another_one_whose_name_the_file_system_does_not_distinguish() {
    for force in [false, true] {
        let scene = Scene::new(&[("REPORT", "1"), ("Report", "22"), ("report", "333"), ("other", "4")]);
        let expected = [("REPORT.enc".to_owned(), "1".to_owned()), ("other.enc".into(), "4".into())];
        let failed = scene.copy(false, force, |_| ());
        assert!(failed > 0);
        assert_eq!(scene.outputs("in"), expected);
        // A later run does not treat the output of one input as the output of the other.
        for resume in [true, false] {
            let failed = scene.copy(resume, force || !resume, |_| ());
            assert!(failed > 0);
            assert_eq!(scene.outputs("in"), expected);
        }
        // Even if the other input does not exist any more, its output is kept.
        fs::remove_file(scene.path("in/REPORT")).unwrap();
        let failed = scene.copy(true, force, |_| ());
        assert!(failed > 0);
        assert_eq!(scene.outputs("in"), expected);
    }
}

#[test]
fn folders_whose_names_the_file_system_does_not_distinguish_are_not_merged() {
    let scene = Scene::new(&[("A/x", "1"), ("A/sub/y", "2"), ("a/y", "3"), ("a/sub/z", "4"), ("b/x", "5")]);
    for force in [false, true, true] {
        let failed = scene.copy(!force, force, |_| ());
        assert!(failed > 0);
        assert_eq!(scene.outputs("in/A"), [("x.enc".to_owned(), "1".to_owned())]);
        assert_eq!(scene.outputs("in/A/sub"), [("y.enc".to_owned(), "2".to_owned())]);
        assert_eq!(scene.outputs("in/b"), [("x.enc".to_owned(), "5".to_owned())]);
        assert!(scene.outputs("in/a").is_empty());
    }
}

#[test]
fn an_input_that_changes_during_the_run_is_processed_again() {
    let scene = Scene::new(&[("file", "old")]);
    let path = scene.path("in/file");
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    // A change of the same length that restores the modification time, after the file was read.
    let change = |_: &File| {
        fs::write(&path, "new").unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    };
    assert_eq!(scene.copy(false, false, change), 0);
    let output = scene.output_dir().join("in/file.enc");
    assert_eq!(fs::read_to_string(&output).unwrap(), "old");
    assert_ne!(fs::metadata(&output).unwrap().modified().unwrap(), modified);
    assert_eq!(scene.copy(true, false, |_| ()), 0);
    assert_eq!(fs::read_to_string(&output).unwrap(), "new");
    assert_eq!(fs::metadata(&output).unwrap().modified().unwrap(), modified);
}

/// Encrypts ten times as many bytes as the input had when it was listed.
struct Growing;

impl Operation for Growing {
    fn direction(&self) -> Direction {
        Direction::Encrypt
    }

    fn compare(&self, pair: &Pair<'_>) -> Result<Existing> {
        Ok(pair.own(true))
    }

    fn process(
        &self,
        input: &File,
        output: &mut (dyn Write + Send),
        options: crate::Options<'_>,
    ) -> Result<u64> {
        let more = std::io::repeat(0).take(10 * input.metadata().unwrap().len());
        let key = FileKey::generate()?;
        Ok(crate::encrypt(&engine(), &key, b"", more, output, options)?.plaintext_len)
    }
}

#[derive(Default)]
struct Counting {
    bytes: AtomicU64,
    files: AtomicU64,
}

impl Host for Counting {
    fn advance(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn file_done(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn the_progress_of_a_file_that_has_grown_is_its_initial_length() {
    let scene = Scene::new(&[("a", &"x".repeat(100_000)), ("b", "x")]);
    let counting = Counting::default();
    assert_eq!(scene.run(&Growing, false, false, &counting), 0);
    assert_eq!(counting.bytes.into_inner(), 100_001);
    assert_eq!(counting.files.into_inner(), 2);
}

#[test]
fn groups_have_the_same_rules() {
    let scene = Scene::new(&[("REPORT", "1"), ("Report", "22"), ("report", "333")]);
    let (engine, key, output) = (engine(), FileKey::generate().unwrap(), scene.output_dir());
    let process = |existing: IfExists| {
        let plan = Plan::new(Direction::Encrypt, &[scene.path("in")], &output, existing, false).unwrap();
        plan.create_folders().unwrap();
        let files: Vec<_> = plan.files.iter().map(|file| (file.clone(), None)).collect();
        let group = Group {
            engine: engine.clone(),
            direction: Direction::Encrypt,
            key: key.clone(),
            context: Vec::new(),
            output: output.clone(),
            replace: existing == IfExists::Replace,
            sync: false,
        };
        let results = group.process(&files, crate::Options::default());
        let done = results.iter().flatten().map(|done| done.plaintext_len).collect::<Vec<_>>();
        let planned = plan.failed.into_iter().map(|(_, error)| error.to_string());
        let failed = planned.chain(results.into_iter().filter_map(|result| Some(result.err()?.to_string())));
        (done, failed.collect::<Vec<_>>())
    };
    for existing in [IfExists::Refuse, IfExists::Resume, IfExists::Replace, IfExists::Resume] {
        let (done, failed) = process(existing);
        assert_eq!(done, [1], "{existing:?}: {failed:?}");
        assert_eq!(failed.len(), 2);
        assert!(failed.iter().all(|why| why.contains("does not distinguish")), "{failed:?}");
        let names: Vec<_> = scene.outputs_names();
        assert_eq!(names, ["REPORT.enc"]);
    }
    // An earlier attempt of another worker has created the outputs after the plan was made.
    fs::remove_dir_all(&output).unwrap();
    let existing = IfExists::Replace;
    let first = process(IfExists::Refuse);
    assert_eq!(first.0, [1]);
    assert_eq!(process(existing).0, [1]);
}

#[test]
fn outputs_that_another_process_creates_meanwhile_are_no_aliases() {
    const FILES: usize = 500;
    let names: Vec<_> = (0..FILES).map(|number| format!("f{number}")).collect();
    let scene = Scene::new(&names.iter().map(|name| (name.as_str(), "")).collect::<Vec<_>>());
    for attempt in 0..10 {
        let output = scene.path(&format!("out{attempt}"));
        fs::create_dir_all(output.join("in")).unwrap();
        let create = || {
            for name in &names {
                fs::write(output.join("in").join(format!("{name}.enc")), "").unwrap();
            }
        };
        std::thread::scope(|scope| {
            let creator = scope.spawn(create);
            while !creator.is_finished() {
                let plan =
                    Plan::new(Direction::Encrypt, &[scene.path("in")], &output, IfExists::Resume, false);
                let plan = plan.unwrap();
                assert!(plan.failed.is_empty(), "{:?}", plan.failed[0]);
                assert_eq!(plan.files.len(), FILES);
            }
        });
    }
}

#[test]
fn encrypted_folders_with_names_that_differ_in_case_are_refused() {
    let scene = Scene::new(&[("A/x", "1"), ("a/y", "3")]);
    let plan =
        Plan::new(Direction::Encrypt, &[scene.path("in")], &scene.output_dir(), IfExists::Refuse, false)
            .unwrap();
    let error = plan.create_folders().unwrap_err();
    assert!(error.to_string().contains("does not distinguish"), "{error:?}");
}

impl Scene {
    fn outputs_names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.output_dir().join("in")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

/// Creates nested folders, each with a name of `len` bytes, and a file in each of them.
fn make_deep(top: &Path, depth: usize, len: usize) {
    use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
    fs::create_dir_all(top).unwrap();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut folder = openat(CWD, top, flags, Mode::empty()).unwrap();
    let name = "d".repeat(len);
    for _ in 0..depth {
        openat(&folder, "f", OFlags::CREATE | OFlags::WRONLY, Mode::RUSR | Mode::WUSR).unwrap();
        mkdirat(&folder, &*name, Mode::RWXU).unwrap();
        folder = openat(&folder, &*name, flags, Mode::empty()).unwrap();
    }
}

#[test]
fn deep_folders_are_refused_beyond_the_limits() {
    // In each case the limit is reached after this number of folders, counted from the output folder.
    for (depth, len, listed) in [(400, 1, inputs::MAX_DEPTH), (400, 255, inputs::MAX_PATH / 256)] {
        let scene = Scene::new(&[]);
        make_deep(&scene.path("in"), depth, len);
        let output_dir = scene.output_dir();
        let found =
            Inputs::find(&[scene.path("in")], Direction::Encrypt, &options(&output_dir), None).unwrap();
        let depths: Vec<_> = found.places.iter().map(|place| place.input.iter().count()).collect();
        assert!(depths.len().abs_diff(listed) <= 1, "{len}: {} folders", depths.len());
        assert_eq!(found.jobs.len(), depths.len());
        assert_eq!(found.failed.len(), 1);
        assert!(found.failed[0].1.to_string().contains("archive"), "{}", found.failed[0].1);
        // Memory holds only one path for each folder, and its length is limited.
        let bytes: usize = found.places.iter().map(|place| place.path.as_os_str().len()).sum();
        assert!(bytes <= depths.len() * inputs::MAX_PATH);
        assert!(found.places.iter().all(|place| place.path.as_os_str().len() <= inputs::MAX_PATH));
    }
}
