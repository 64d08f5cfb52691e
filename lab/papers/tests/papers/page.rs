//! Checks that the documentation pages in `docs/papers` equal the generated pages.

use std::path::Path;

use lockstep_papers::{Page, cell, g80, geforce, qpu};

/// Compares a page and its pictures with the files in `docs/papers`.
fn check(name: &str, page: &Page) {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/papers");
    let read = |name: &str| {
        std::fs::read_to_string(docs.join(name)).unwrap_or_else(|error| panic!("docs/papers/{name}: {error}"))
    };
    // `assert_eq` is not used, because it would print both long texts.
    assert!(
        read(&format!("{name}.md")) == page.markdown,
        "docs/papers/{name}.md is out of date: make lab-pages"
    );
    for (file, picture) in &page.pictures {
        assert!(
            &read(&format!("{name}/{file}")) == picture,
            "docs/papers/{name}/{file} is out of date: make lab-pages"
        );
        assert!(picture.len() < 64 * 1024, "{file} is large");
    }
    let files = std::fs::read_dir(docs.join(name)).unwrap().count();
    assert_eq!(files, page.pictures.len(), "a picture that no page shows");
}

#[test]
fn the_page_of_the_cell_is_up_to_date() {
    let page = cell::page(&crate::REPORT, "cell").unwrap();
    check("cell", &page);
}

#[test]
fn the_page_of_the_geforce_6800_is_up_to_date() {
    let page = geforce::page(&crate::MODEL, &crate::SWEEP, "geforce-engine");
    check("geforce-engine", &page);
}

#[test]
fn the_page_of_videocore_is_up_to_date() {
    let page = qpu::page(&crate::QPU_REPORT, "videocore").unwrap();
    check("videocore", &page);
}

#[test]
fn the_page_of_the_g80_is_up_to_date() {
    let page = g80::page(&crate::G80, "g80");
    check("g80", &page);
}
