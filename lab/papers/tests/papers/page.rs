//! Checks that the documentation pages in `docs/papers` equal the generated pages, and that their links to sections lead somewhere.

use std::collections::BTreeSet;
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

/// The anchors that GitHub gives to the headings of a page: lower case, without punctuation, with hyphens for spaces.
fn anchors(markdown: &str) -> BTreeSet<String> {
    let headings = markdown.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|heading| {
            let text = heading.trim_start_matches('#').trim().to_lowercase();
            let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

#[test]
fn links_to_sections_of_pages_lead_to_headings() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/papers");
    let mut checked = 0;
    for entry in std::fs::read_dir(&docs).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let page = std::fs::read_to_string(&path).unwrap();
        let targets = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for (file, anchor) in targets.filter_map(|target| target.split_once('#')) {
            if file.contains("://") {
                continue;
            }
            let of = if file.is_empty() { path.clone() } else { docs.join(file) };
            let text =
                std::fs::read_to_string(&of).unwrap_or_else(|error| panic!("{}: {error}", of.display()));
            let name = path.file_name().unwrap().display();
            assert!(anchors(&text).contains(anchor), "docs/papers/{name} links to {file}#{anchor}");
            checked += 1;
        }
    }
    assert!(checked > 0, "no page has a link to a section");
}
