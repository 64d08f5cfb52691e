
use std::fs;

use super::*;
use crate::folder::sys::IGNORES_CASE;

#[test]
fn names_that_a_file_system_does_not_distinguish_are_recognised() {
    let base = tempfile::tempdir().unwrap();
    for (folder, ignores_case) in [(base.path().join("a"), false), (base.path().join(IGNORES_CASE), true)] {
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("Report"), "").unwrap();
        let root = Folder::open(&folder, false).unwrap();
        let names = |name: &str| check(&root, &folder.join(name));
        assert!(names("Report").unwrap().unwrap().names.contains(OsStr::new("Report")));
        assert!(names("other").unwrap().is_none());
        match names("report") {
            Ok(found) => assert!(!ignores_case && found.is_none()),
            Err(error) => assert!(ignores_case && error.to_string().contains("from 'Report'"), "{error}"),
        }
        // Two names of one file are not aliases.
        fs::hard_link(folder.join("Report"), folder.join("other")).unwrap();
        assert!(names("other").unwrap().unwrap().names.contains(OsStr::new("other")));
    }
}
