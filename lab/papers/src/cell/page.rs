//! Generates the documentation page from a template and the report.

use super::picture::svg;
use super::window::Window;
use super::{Error, Report, kernel};
use crate::Page;

/// The template: a hand-written text in which each `{{name}}` is replaced by results.
const TEMPLATE: &str = include_str!("page.md");

/// The pictures: kernel and caption.
const PICTURES: [(&str, &str); 4] = [
    (
        "spu/ctr0",
        "This kernel processes one block at a time and is not scheduled. Most instructions wait for the previous instruction, \
         and the branches have no hints, so the branch to the next round costs 18 cycles.",
    ),
    (
        "spu/cbc2",
        "The blocks of a chain cannot overlap. The scheduler finds the shortest path through a round; the remaining \
         stalls are the latencies on this path.",
    ),
    (
        "spu/ctr4",
        "Table lookups are done in registers. A step that both pipes can execute is assigned to the pipe with free slots, so \
         both pipes are busy in nearly every cycle.",
    ),
    ("spu/ctr-vperm", "The S-box by vector permutation needs fewer instructions of both pipes."),
];

/// Generates the page. `folder` is the folder in the links to the pictures.
///
/// # Errors
/// [`Error::Kernel`] if a kernel does not run, which is a bug.
///
/// # Panics
/// If the template contains an unknown name, which is a bug.
pub fn page(report: &Report, folder: &str) -> Result<Page, Error> {
    let mut pictures = Vec::new();
    let mut shown = String::new();
    for (name, words) in PICTURES {
        let kernel = kernel(name)?;
        let (pass, of) = kernel.loops[0];
        let measured = report.find(name, pass).expect("the report has all kernels");
        let window = Window::of_kernel(kernel, (pass, of), 10, None)?;
        let blocks = if of.mode.is_chain() { 1 } else { of.blocks };
        let row = (measured.clocks.round * f64::from(blocks)).round() as usize;
        let file = format!("{}.svg", name.replace("spu/", ""));
        shown += &format!("\n**{name}.** {words}\n\n");
        shown += &format!("![{name}: {}]({folder}/{file})\n", window.summary());
        pictures.push((file, svg(&window, row.max(1))));
    }
    pictures.push(("table-2.svg".into(), report.chart()));
    let round = |kernel: &str| {
        let measured = report.measured().iter().find(|one| one.kernel.name == kernel);
        format!("{:.2}", measured.expect("the report has all kernels").clocks.round)
    };
    let mut markdown = TEMPLATE.to_owned();
    for (name, table) in [
        ("table_1", report.table_1()),
        ("table_2", report.table_2()),
        ("causes", report.causes()),
        ("ideas", report.ideas()),
        ("table_3", report.table_3()),
        ("further", report.further()),
        ("composed", report.composed()),
        ("besides", report.besides()),
        ("cycles", report.cycles()),
        ("rolled", report.rolled()),
        ("sensitivity", report.other_rules()),
    ] {
        markdown = markdown.replace(&format!("{{{{{name}}}}}\n"), &crate::markdown(&table));
    }
    markdown = markdown.replace("{{pictures}}\n", shown.trim_start());
    // The remaining names in the template are names of kernels. Each is replaced by the measured clocks per round.
    while let Some((before, rest)) = markdown.split_once("{{") {
        let (name, after) = rest.split_once("}}").expect("the template is well-formed");
        markdown = format!("{before}{}{after}", round(name));
    }
    Ok(Page { markdown, pictures })
}
