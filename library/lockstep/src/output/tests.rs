//! Tests in which an attacker changes the folder between two system calls, for every pair of successive calls, and tests in which
//! system calls fail.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::{FileMode, OnExisting, OutputFile, OutputOptions, Sparse, Trials, check_folder};
use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::folder::sys::{Step, with_hook};

const NEW: &[u8] = b"new content";
const FORCE: OutputOptions = OutputOptions {
    force: true,
    mode: FileMode(0o640),
    sync: false,
    regular_only: false,
    sparse: Sparse::Always,
};
const KEEP: OutputOptions = OutputOptions { force: false, ..FORCE };

/// The files of a test. `shared/out` is a file of the attacker. `shared/link` is a symbolic link to a file in the
/// folder `victim`. `evil` is a symbolic link to the folder `victim`, which also contains a file `out`.
struct Scene {
    folder: tempfile::TempDir,
    victims: Vec<(PathBuf, fs::Metadata)>,
}

impl Scene {
    fn new() -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("shared")).unwrap();
        fs::create_dir(path("victim")).unwrap();
        fs::write(path("shared/out"), "attacker's").unwrap();
        fs::set_permissions(path("shared/out"), PermissionsExt::from_mode(0o666)).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(path("shared/out"), Some(65534), Some(65534)).unwrap();
        }
        let names = ["victim/secret", "victim/out"];
        for name in names {
            fs::write(path(name), "victim's").unwrap();
            fs::set_permissions(path(name), PermissionsExt::from_mode(0o604)).unwrap();
        }
        symlink(path("victim/secret"), path("shared/link")).unwrap();
        symlink(path("victim"), path("evil")).unwrap();
        let victims = names.map(|name| (path(name), fs::metadata(path(name)).unwrap())).into();
        Scene { folder, victims }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn assert_victims_untouched(&self, when: &str) {
        for (path, before) in &self.victims {
            let now = fs::symlink_metadata(path).unwrap();
            let identity =
                |m: &fs::Metadata| (m.ino(), m.mode(), m.uid(), m.gid(), m.nlink(), m.mtime_nsec());
            assert_eq!(identity(&now), identity(before), "{when}: {}", path.display());
            assert_eq!(fs::read(path).unwrap(), b"victim's", "{when}: {}", path.display());
        }
        assert_eq!(fs::read_dir(self.path("victim")).unwrap().count(), 2, "{when}");
    }
}

fn write_out(path: &Path, options: OutputOptions) -> Result<()> {
    let mut output = OutputFile::create(path, options)?;
    output.write_all(NEW).unwrap();
    output.commit()
}

fn exchange(one: &Path, other: &Path) {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
}

fn temporary_names(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(".lockstep-")).collect()
}

/// Repeats the write once for each of its system calls, with the attack immediately before this call. This is done
/// for a file that has no name until it is complete, and for a file with a temporary name. `check` receives the
/// result of each write.
fn attack_every_step(
    options: OutputOptions,
    attack: fn(&Scene),
    check: impl Fn(&Scene, &str, Step, Result<()>),
) {
    for without_name in [true, false] {
        attack_each(options, without_name, attack, &check);
    }
}

fn attack_each(
    options: OutputOptions,
    without_name: bool,
    attack: fn(&Scene),
    check: &impl Fn(&Scene, &str, Step, Result<()>),
) {
    for at in 0.. {
        let scene = Rc::new(Scene::new());
        if !options.force {
            fs::remove_file(scene.path("shared/out")).unwrap();
        }
        let (count, attacked) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(None)));
        let hook = {
            let (scene, count, attacked) = (Rc::clone(&scene), Rc::clone(&count), Rc::clone(&attacked));
            move |step| {
                if count.replace(count.get() + 1) == at {
                    attacked.set(Some(step));
                    attack(&scene);
                }
                if step == Step::CreateUnnamed && !without_name { Err(Errno::OPNOTSUPP) } else { Ok(()) }
            }
        };
        let outcome = with_hook(hook, || write_out(&scene.path("shared/out"), options));
        let Some(step) = attacked.get() else {
            assert!(at >= 7, "only {at} steps");
            return;
        };
        check(&scene, &format!("before call {at}, {step:?}: {outcome:?}"), step, outcome);
    }
}

/// Checks the new file: owner, permissions and content.
#[track_caller]
fn assert_new_file(path: &Path, when: &str) {
    let found = fs::symlink_metadata(path).unwrap();
    assert!(found.is_file(), "{when}");
    assert_eq!(found.uid(), rustix::process::geteuid().as_raw(), "{when}");
    assert_eq!(found.mode() & 0o7777 & !0o640, 0, "{when}");
    assert_eq!(fs::read(path).unwrap(), NEW, "{when}");
}

#[test]
fn the_output_is_replaced_by_a_link_at_every_step() {
    for sync in [false, true] {
        attack_every_step(
            OutputOptions { sync, ..FORCE },
            |scene| exchange(&scene.path("shared/out"), &scene.path("shared/link")),
            |scene, when, step, outcome| {
                scene.assert_victims_untouched(when);
                assert!(outcome.is_ok(), "{when}");
                assert_eq!(temporary_names(&scene.path("shared")), [] as [PathBuf; 0], "{when}");
                // The folder is synced after the rename, so an attack before this step moves the new file.
                let moved = matches!(step, Step::ListFolder | Step::SyncFolder);
                assert_new_file(&scene.path(if moved { "shared/link" } else { "shared/out" }), when);
            },
        );
    }
}

#[test]
fn the_temporary_file_is_replaced_by_a_link_at_every_step() {
    attack_every_step(
        FORCE,
        |scene| {
            if let Some(temporary) = temporary_names(&scene.path("shared")).first() {
                exchange(temporary, &scene.path("shared/link"));
            }
        },
        |scene, when, step, outcome| {
            scene.assert_victims_untouched(when);
            match outcome {
                Ok(()) if step == Step::Rename => {
                    // No system call renames a file by its descriptor. If the attack follows the last check, the rename
                    // therefore moves the attacker's link. The attacker gains nothing, since an attack after the rename
                    // could place the same link there.
                    assert!(fs::symlink_metadata(scene.path("shared/out")).is_ok(), "{when}");
                }
                Ok(()) => assert_new_file(&scene.path("shared/out"), when),
                Err(error) => assert!(matches!(error, Error::File { .. }), "{when}"),
            }
        },
    );
}

#[test]
fn the_folder_is_replaced_by_a_link_at_every_step() {
    for options in [FORCE, KEEP] {
        attack_every_step(
            options,
            |scene| exchange(&scene.path("shared"), &scene.path("evil")),
            |scene, when, step, outcome| {
                if step == Step::OpenFolder {
                    // The path was changed before it was opened, so the output is written to the folder of the new
                    // path.
                    return;
                }
                scene.assert_victims_untouched(when);
                if outcome.is_ok() {
                    // After the exchange, `evil` is the folder that was opened.
                    assert_new_file(&scene.path("evil/out"), when);
                }
                assert_eq!(temporary_names(&scene.path("evil")), [] as [PathBuf; 0], "{when}");
            },
        );
    }
}

#[test]
fn a_special_file_replaced_by_a_regular_one_is_not_written() {
    let scene = Scene::new();
    fs::remove_file(scene.path("shared/out")).unwrap();
    symlink("/dev/null", scene.path("shared/out")).unwrap();
    let (out, link) = (scene.path("shared/out"), scene.path("shared/link"));
    let hook = move |step| {
        if step == Step::OpenExisting {
            exchange(&out, &link);
        }
        Ok(())
    };
    let outcome = with_hook(hook, || write_out(&scene.path("shared/out"), FORCE));
    assert!(matches!(outcome, Err(Error::File { .. })), "{outcome:?}");
    scene.assert_victims_untouched("");
}

/// A hook that makes these steps fail.
fn failing(steps: &'static [(Step, Errno)]) -> impl FnMut(Step) -> rustix::io::Result<()> {
    move |step| steps.iter().find(|(failing, _)| *failing == step).map_or(Ok(()), |(_, error)| Err(*error))
}

#[test]
fn file_systems_without_rename_or_links_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let neither = &[
        (Step::CreateUnnamed, Errno::OPNOTSUPP),
        (Step::RenameNoReplace, Errno::INVAL),
        (Step::Link, Errno::PERM),
    ];
    let error = with_hook(failing(neither), || OutputFile::create(&path, KEEP)).unwrap_err();
    assert!(error.to_string().contains("neither rename without replacing nor make hard links"), "{error}");
    let error = with_hook(failing(neither), || OutputFile::check(&path, KEEP)).unwrap_err();
    assert!(error.to_string().contains("allow overwriting"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    with_hook(failing(neither), || write_out(&path, FORCE)).unwrap();
    assert_new_file(&path, "by a plain rename");
}

#[test]
fn a_hard_link_is_used_without_rename_no_replace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let only_links: &[_] = &[(Step::CreateUnnamed, Errno::OPNOTSUPP), (Step::RenameNoReplace, Errno::INVAL)];
    with_hook(failing(only_links), || write_out(&path, KEEP)).unwrap();
    assert_new_file(&path, "by a link");
    assert_eq!((fs::read_dir(folder.path()).unwrap().count(), fs::metadata(&path).unwrap().nlink()), (1, 1));
    // If another file gets this name meanwhile, it is not lost.
    let other = folder.path().join("other");
    let outcome = with_hook(failing(only_links), || {
        let mut output = OutputFile::create(&other, KEEP)?;
        output.write_all(NEW).unwrap();
        fs::write(&other, "precious").unwrap();
        output.commit()
    });
    assert!(matches!(outcome, Err(Error::Exists { .. })), "{outcome:?}");
    assert_eq!(fs::read(&other).unwrap(), b"precious");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn failures_leave_only_the_previous_files() {
    let both = [Step::SetMode, Step::SyncFile, Step::Rename, Step::Look];
    let named = both.iter().chain(&[Step::Create]).map(|step| (*step, Some(Step::CreateUnnamed)));
    for (step, unsupported) in both.iter().map(|step| (*step, None)).chain(named) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(&path, "old").unwrap();
        let fails = move |now| if now == step || Some(now) == unsupported { Err(Errno::IO) } else { Ok(()) };
        let outcome = with_hook(fails, || write_out(&path, OutputOptions { sync: true, ..FORCE }));
        assert!(matches!(&outcome, Err(Error::File { .. })), "{step:?}: {outcome:?}");
        assert_eq!(fs::read(&path).unwrap(), b"old", "{step:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{step:?}");
    }
}

#[test]
fn a_failed_sync_is_an_error_only_if_requested() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    for step in [Step::SyncFile, Step::ListFolder, Step::SyncFolder] {
        let fails = move |now| if now == step { Err(Errno::IO) } else { Ok(()) };
        let outcome = with_hook(fails, || write_out(&path, OutputOptions { sync: true, ..FORCE }));
        assert!(matches!(&outcome, Err(Error::File { action: "sync", .. })), "{step:?}: {outcome:?}");
        with_hook(fails, || write_out(&path, FORCE)).unwrap();
    }
    // The order of the steps is: sync the data, rename the file, sync the folder.
    let steps = Rc::new(std::cell::RefCell::new(Vec::new()));
    let record = {
        let steps = Rc::clone(&steps);
        move |step| {
            steps.borrow_mut().push(step);
            Ok(())
        }
    };
    with_hook(record, || write_out(&path, OutputOptions { sync: true, ..FORCE })).unwrap();
    let naming = [Step::LinkOpen, Step::Look, Step::Rename];
    let last =
        [&[Step::SetMode, Step::SyncFile][..], &naming, &[Step::ListFolder, Step::SyncFolder]].concat();
    assert!(steps.borrow().ends_with(&last), "{steps:?}");
}

/// Files can be created in a folder that the process may write to and search, but not list.
#[cfg(target_os = "linux")]
#[test]
fn a_file_is_synced_in_a_folder_that_cannot_be_listed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, below) = (folder.path().join("out"), Folder::open(folder.path(), true).unwrap());
    let unlisted = &[(Step::ListFolder, Errno::ACCESS)];
    let options = OutputOptions { sync: true, ..KEEP };
    with_hook(failing(unlisted), || write_out(&path, options)).unwrap();
    assert_new_file(&path, "without a permission to list");
    with_hook(failing(unlisted), || OutputFile::check(&folder.path().join("other"), options)).unwrap();
    with_hook(failing(unlisted), || below.sync(|| Ok(File::open(&path).unwrap()))).unwrap();
}

#[test]
fn a_file_has_no_name_until_it_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    for options in [KEEP, FORCE] {
        let mut output = OutputFile::create(&path, options).unwrap();
        output.write_all(NEW).unwrap();
        // If the file system did not support files without a name, the tests of such files would test nothing.
        assert_eq!(
            output.as_file().metadata().unwrap().nlink(),
            0,
            "the file system of the tests has O_TMPFILE"
        );
        assert_eq!(temporary_names(folder.path()), [] as [PathBuf; 0]);
        output.commit().unwrap();
        assert_new_file(&path, "complete");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
    // A file that another process creates under the name meanwhile is kept.
    fs::remove_file(&path).unwrap();
    let output = OutputFile::create(&path, KEEP).unwrap();
    fs::write(&path, "precious").unwrap();
    assert!(matches!(output.commit(), Err(Error::Exists { .. })));
    assert_eq!(fs::read(&path).unwrap(), b"precious");
    // A file that cannot be linked is written under a temporary name.
    with_hook(failing(&[(Step::LinkOpen, Errno::NOENT)]), || write_out(&path, FORCE)).unwrap();
    assert_new_file(&path, "with a temporary name");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_folder_is_checked_without_a_name() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o1777)).unwrap();
    // A file has the name that another user could predict.
    fs::write(folder.path().join(".lockstep-trial"), "").unwrap();
    as_nobody(|| check_folder(folder.path(), KEEP).unwrap());
    check_folder(folder.path(), FORCE).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let error = check_folder(&folder.path().join("none"), KEEP).unwrap_err();
    assert!(error.to_string().contains("there is no folder"), "{error}");
}

#[test]
fn files_that_cannot_be_synced_are_refused() {
    let options = OutputOptions { sync: true, ..KEEP };
    let null = Path::new("/dev/null");
    for outcome in [OutputFile::check(null, options), OutputFile::create(null, options).map(drop)] {
        let error = outcome.unwrap_err();
        assert!(error.to_string().contains("cannot be synced"), "{error}");
    }
    OutputFile::check(null, KEEP).unwrap();
    OutputFile::create(null, KEEP).unwrap();
}

/// Runs `run` as a user who owns none of the files, if the tests run as root.
fn as_nobody<T: Send>(run: impl FnOnce() -> T + Send) -> Option<T> {
    use rustix::process::{Gid, Uid};
    if !rustix::process::geteuid().is_root() {
        eprintln!("NOT TESTED: only root can act as another user");
        return None;
    }
    let run = || {
        // These calls change the user and group of this thread only.
        let (user, group) = (Uid::from_raw(65534), Gid::from_raw(65534));
        rustix::thread::set_thread_res_gid(group, group, group).unwrap();
        rustix::thread::set_thread_res_uid(user, user, user).unwrap();
        run()
    };
    Some(std::thread::scope(|scope| scope.spawn(run).join().unwrap()))
}

#[test]
fn a_file_of_another_user_in_a_sticky_folder_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o1777)).unwrap();
    let path = |name: &str| folder.path().join(name);
    File::create(path("roots")).unwrap();
    symlink("roots", path("link")).unwrap();
    let told = as_nobody(|| {
        for name in ["roots", "link"] {
            let error = OutputFile::check(&path(name), FORCE).unwrap_err();
            assert!(error.to_string().contains("sticky"), "{error}");
            let error = OutputFile::create(&path(name), FORCE).unwrap_err();
            assert!(error.to_string().contains("sticky"), "{error}");
        }
        // A user may create files, and replace files that the user owns.
        write_out(&path("own"), KEEP).unwrap();
        write_out(&path("own"), FORCE).unwrap();
    });
    if told.is_some() {
        // Root may replace the files of both users.
        write_out(&path("own"), FORCE).unwrap();
        write_out(&path("roots"), FORCE).unwrap();
        assert_new_file(&path("own"), "by root");
    }
}

#[test]
fn folders_that_cannot_be_written_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let path = folder.path().join("out");
    as_nobody(|| {
        for outcome in [OutputFile::check(&path, KEEP), OutputFile::create(&path, FORCE).map(drop)] {
            assert!(outcome.unwrap_err().to_string().contains("Permission denied"));
        }
    });
}

#[test]
fn only_abandoned_temporary_files_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let open = || Folder::open(folder.path(), true).unwrap();
    let named = failing(&[(Step::CreateUnnamed, Errno::OPNOTSUPP)]);
    let running = with_hook(named, || OutputFile::create(&at("out"), KEEP)).unwrap();
    assert_eq!(temporary_names(folder.path()).len(), 1);
    fs::write(at(".lockstep-0123456789abcdef.tmp"), "left by a process that was killed").unwrap();
    fs::write(at(".lockstep-4444444444444444.tmp"), "of a process on another machine, perhaps").unwrap();
    for other in
        [".lockstep-0123456789abcde.tmp", ".lockstep-0123456789abcdeg.tmp", "0123456789abcdef.tmp", "x"]
    {
        fs::write(at(other), "").unwrap();
    }
    let linked = ".lockstep-2222222222222222.tmp";
    fs::write(at(linked), "with two names").unwrap();
    fs::hard_link(at(linked), at("second name")).unwrap();
    if rustix::process::geteuid().is_root() {
        let foreign = at(".lockstep-3333333333333333.tmp");
        fs::write(&foreign, "of another user").unwrap();
        std::os::unix::fs::chown(foreign, Some(65534), None).unwrap();
    }
    symlink("x", at(".lockstep-0000000000000000.tmp")).unwrap();
    fs::create_dir(at(".lockstep-1111111111111111.tmp")).unwrap();
    let before = fs::read_dir(folder.path()).unwrap().count();
    for path in temporary_names(folder.path()) {
        let is_new = path == at(".lockstep-4444444444444444.tmp");
        let age = Duration::from_secs(if is_new { 3000 } else { 4000 });
        if fs::symlink_metadata(&path).unwrap().is_file() {
            File::open(path).unwrap().set_modified(SystemTime::now() - age).unwrap();
        }
    }
    super::remove_abandoned(&open()).unwrap();
    assert!(!at(".lockstep-0123456789abcdef.tmp").exists());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), before - 1);
    running.commit().unwrap();
    assert!(at("out").exists());
}

#[test]
fn an_open_folder_is_used_after_it_was_moved() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("a")).unwrap();
    let open = Folder::open(&at("a"), true).unwrap();
    fs::rename(at("a"), at("b")).unwrap();
    let options = OutputOptions { sync: true, ..KEEP };
    let trials = Trials::default();
    let mut output = OutputFile::create_in(open, &at("a/out"), options, OnExisting::Fail, &trials).unwrap();
    output.write_all(NEW).unwrap();
    output.commit().unwrap();
    assert_eq!(fs::read(at("b/out")).unwrap(), NEW);
    assert!(!at("a").exists());
}

/// Creates a file in a folder. `trials` has the results of earlier trials in this folder, which are not repeated.
fn create_tried(folder: &Path, name: &str, existing: OnExisting, trials: &Trials) -> Result<OutputFile> {
    let open = Folder::open(folder, true).unwrap();
    let mut output = OutputFile::create_in(open, &folder.join(name), KEEP, existing, trials)?;
    output.write_all(NEW).unwrap();
    Ok(output)
}

#[test]
fn an_unused_name_is_looked_up_where_no_operation_takes_only_such_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let fail = |step| match step {
        Step::CreateUnnamed | Step::RenameNoReplace | Step::Link => Err(Errno::OPNOTSUPP),
        _ => Ok(()),
    };
    with_hook(fail, || {
        let trials = Trials::default();
        let create = |existing| create_tried(&path, "out", existing, &trials);
        let refused = create(OnExisting::Fail).unwrap_err().to_string();
        assert!(refused.contains("can neither rename without replacing"), "{refused}");
        let (first, second) =
            (create(OnExisting::FailByLookup).unwrap(), create(OnExisting::FailByLookup).unwrap());
        first.commit().unwrap();
        assert!(matches!(second.commit(), Err(Error::Exists { .. })));
        assert!(matches!(create(OnExisting::FailByLookup), Err(Error::Exists { .. })));
        create(OnExisting::Replace).unwrap().commit().unwrap();
    });
    assert_eq!(fs::read(path.join("out")).unwrap(), NEW);
    assert!(temporary_names(&path).is_empty());
}

#[test]
fn files_of_one_folder_need_one_trial_and_have_their_own_modes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let steps = Rc::new(Cell::new(0));
    let counted = Rc::clone(&steps);
    let trials = Trials::default();
    let create = |name: &str| {
        let counted = Rc::clone(&counted);
        let before = counted.get();
        with_hook(
            move |_| {
                counted.set(counted.get() + 1);
                Ok(())
            },
            || create_tried(&path, name, OnExisting::Fail, &trials).unwrap().commit().unwrap(),
        );
        steps.get() - before
    };
    let (first, second) = (create("a"), create("b"));
    assert!(second < first, "{first} and {second} calls");
    for name in ["a", "b"] {
        assert_new_file(&path.join(name), name);
    }
}
