//! The documentation page is the generated one.

use std::path::Path;

use lockstep_lab::cell::page;

#[test]
fn the_page_is_up_to_date() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/papers");
    let read = |name: &str| {
        std::fs::read_to_string(docs.join(name)).unwrap_or_else(|error| panic!("docs/papers/{name}: {error}"))
    };
    let page = page(&crate::REPORT, "cell").unwrap();
    // Without `assert_eq`, which would print both long texts.
    assert!(read("cell.md") == page.markdown, "docs/papers/cell.md is out of date: make lab-pages");
    for (name, picture) in &page.pictures {
        assert!(
            &read(&format!("cell/{name}")) == picture,
            "docs/papers/cell/{name} is out of date: make lab-pages"
        );
        assert!(picture.len() < 64 * 1024, "{name} is large");
    }
    let files = std::fs::read_dir(docs.join("cell")).unwrap().count();
    assert_eq!(files, page.pictures.len(), "a picture that no page shows");
}
