use super::*;

#[test]
fn the_directory_is_that_of_the_user() {
    let of = |pairs: &'static [(&str, &str)]| {
        let found = Cache::of("part", |name| {
            pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value))
        });
        found.map(|cache| cache.folder().to_string_lossy().into_owned())
    };
    assert_eq!(of(&[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")]).unwrap(), "/x/lockstep/part");
    assert_eq!(of(&[("XDG_CACHE_HOME", "x"), ("HOME", "/h")]).unwrap(), "/h/.cache/lockstep/part");
    assert_eq!(of(&[("HOME", "relative")]), None);
    assert_eq!(of(&[]), None);
}

#[test]
fn old_files_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache { is_ours: true, ..Cache::at(folder.path()) };
    fs::create_dir_all(folder.path().join("sub")).unwrap();
    let unfinished = format!("b.1-0{UNFINISHED}");
    cache.write("a", b"one").unwrap();
    fs::write(folder.path().join(&unfinished), b"tw").unwrap();
    let names = || {
        let mut names = cache.names();
        names.sort();
        names
    };
    cache.prune(SystemTime::now());
    assert_eq!(names(), ["a", &unfinished, "sub"]);
    cache.prune(SystemTime::now() + KEEP_UNFINISHED * 2);
    assert_eq!(names(), ["a", "sub"]);
    cache.prune(SystemTime::now() + KEEP * 2);
    assert_eq!(names(), ["sub"], "folders stay");
    // A write removes old files if the folder belongs to the cache. An old file that has been read recently is kept.
    let ours = ["old", "read"];
    ours.iter().for_each(|name| cache.write(name, b"").unwrap());
    for name in ours {
        let file = fs::File::open(folder.path().join(name)).unwrap();
        file.set_modified(SystemTime::now() - KEEP * 2).unwrap();
    }
    Cache::at(folder.path()).write("a", b"one").unwrap();
    assert_eq!(names(), ["a", "old", "read", "sub"]);
    assert_eq!(cache.read("read", 1).unwrap(), b"");
    cache.write("a", b"one").unwrap();
    assert_eq!(names(), ["a", "read", "sub"]);
}

#[test]
fn files_are_written_atomically() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path().join("deep").join("er"));
    assert!(!cache.contains("a") && cache.read("a", 100).is_none() && cache.names().is_empty());
    cache.write("a", b"one").unwrap();
    cache.write("a", b"two").unwrap();
    assert_eq!(cache.read("a", 3).unwrap(), b"two");
    assert!(cache.read("a", 2).is_none(), "it is longer");
    assert_eq!(cache.names(), ["a"]);
    cache.remove("a").unwrap();
    cache.remove("a").unwrap();
    assert!(cache.names().is_empty());
    // If a folder already has the name of the cache file, the write fails and leaves no temporary file.
    fs::create_dir(cache.folder().join("b")).unwrap();
    fs::write(cache.folder().join("b").join("c"), b"").unwrap();
    cache.write("b", b"one").unwrap_err();
    assert_eq!(cache.names(), ["b"]);
    assert!(cache.read("b", 100).is_none());
    #[cfg(unix)]
    {
        use std::os::unix::fs::{PermissionsExt, symlink};
        cache.write("c", b"three").unwrap();
        let mode = fs::metadata(cache.folder().join("c")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        // Files that other users may write to are not read.
        for mode in [0o620, 0o602] {
            fs::set_permissions(cache.folder().join("c"), fs::Permissions::from_mode(mode)).unwrap();
            assert!(cache.read("c", 100).is_none() && !cache.contains("c"));
        }
        // A broken symbolic link is replaced, not followed.
        symlink(folder.path().join("nowhere"), cache.folder().join("d")).unwrap();
        assert!(cache.read("d", 100).is_none());
        cache.write("d", b"four").unwrap();
        assert!(cache.read("d", 100).unwrap() == b"four" && !folder.path().join("nowhere").exists());
        // Reading a FIFO without a writer would block.
        let pipe = cache.folder().join("e");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(cache.read("e", 100).is_none());
    }
}
