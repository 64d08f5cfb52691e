//! The documentation page, generated from a template and the report.

use lockstep_qpu::kernels::bitslice::{Blocks, Combination};
use lockstep_qpu::launch::Launch;

use super::kernels::Named;
use super::model::{CLOCK_HZ, HOST_BYTE, HOST_CALL, HOST_LONG_CALL, INVOCATION, LONG_CALL};
use super::picture::svg;
use super::window::Window;
use super::{Error, Report, figures, hypotheses, paper, plots};
use crate::Page;

/// The template: a hand-written text in which each `{{name}}` is replaced by results.
const TEMPLATE: &str = include_str!("page.md");

/// The pictures: a kernel, the name of the file, and the caption.
const PICTURES: [(Launch, &str, &str); 3] = [
    (
        Launch::Packed { decrypts: false },
        "packed",
        "The picture shows a round of the thesis's kernel, for four blocks. The thesis's compiler used one ALU at a time, \
         extracted bytes by a constant, a mask and a shift, and left the slots after branches empty.",
    ),
    (
        Launch::PackedTuned { decrypts: false },
        "packed-tuned",
        "The picture shows all rounds, for four blocks. Two QPUs share a texture unit, which takes 16 clocks for each \
         request, so a QPU waits for the unit in a third of the clocks.",
    ),
    (
        Launch::Ctr,
        "bitslice",
        "The picture shows a round, for 32 blocks. The add ALU has an operation in nearly every instruction. The mul ALU has \
         rotations, moves, and those XORs that can be computed as sums or differences of bytes without a carry.",
    ),
];

/// Number of columns in a row of a picture.
const ROW: usize = 64;

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
    for (launch, name, words) in PICTURES {
        let window = Window::of_kernel(Named::of(launch), 128, 12, None)?;
        let file = format!("{name}.svg");
        shown += &format!("\n**`qpu/{name}`.** {words}\n\n");
        shown += &format!("![qpu/{name}: {}]({folder}/{file})\n", window.summary());
        pictures.push((file, svg(&window, ROW)));
    }
    pictures.extend(figures::all());
    pictures.extend(plots::all(report));
    let mut markdown = TEMPLATE.replace("{{pictures}}\n", shown.trim_start());
    for (name, table) in [
        ("table_5_1", report.table_5_1()),
        ("table_5_2", report.table_5_2()),
        ("overclocked", report.overclocked_table()),
        ("one_block", report.one_block_table()),
        ("table_7_1", report.table_7_1()),
        ("table_7_2", report.table_7_2()),
        ("table_7_3", report.table_7_3()),
        ("table_7_4", report.table_7_4()),
        ("hypotheses", hypotheses::table(report.hypotheses())),
        ("chains", report.chain_table()),
        ("kernels", report.kernel_table()),
        ("spent", report.spent_table()),
    ] {
        replace(&mut markdown, &format!("{{{{{name}}}}}\n"), &crate::markdown(&table));
    }
    for (name, value) in values(report) {
        replace(&mut markdown, &format!("{{{{{name}}}}}"), &value);
    }
    assert!(!markdown.contains("{{"), "the template has an unknown name");
    Ok(Page { markdown, pictures })
}

fn replace(markdown: &mut String, place: &str, text: &str) {
    assert!(markdown.contains(place), "the template has no {place}");
    *markdown = markdown.replace(place, text);
}

/// The figures that replace the names in the template.
fn values(report: &Report) -> Vec<(&'static str, String)> {
    let clocks = |launch, bits, qpus| format!("{:.1}", report.find(launch, bits, qpus).clocks_per_byte());
    let rate = |launch| format!("{:.0}", report.find(launch, 128, 12).megabytes());
    let ecb = |decrypts| Launch::Blocks(Blocks { decrypts, combination: Combination::None });
    let chain = Launch::Blocks(Blocks { decrypts: false, combination: Combination::Chain });
    let packed = |decrypts| Launch::Packed { decrypts };
    let largest = |differences: Vec<f64>| {
        let largest = differences.into_iter().map(f64::abs).fold(0.0, f64::max);
        format!("{:.1}", 100.0 * largest)
    };
    let kernel = report.encryption().iter().map(|(row, model)| model.kernel / row.kernel - 1.0);
    let last = report.encryption().last().expect("the table has rows");
    let one = report.find(packed(false), 128, 1);
    let twelve = report.find(packed(false), 128, 12);
    let factor = f64::from(12) * one.clocks_of_turn / twelve.clocks_of_turn;
    let is_middle = |bytes: u64| (1 << 14..1 << 24).contains(&bytes);
    let middle = report.encryption().iter().filter(|(row, _)| is_middle(row.bytes));
    let middle = middle.map(|(row, model)| model.twelve / row.twelve - 1.0);
    let decryption = report.decryption().iter().flat_map(|(row, model)| {
        let one = row.one.map(|one| model.one / one - 1.0);
        one.into_iter().chain([model.twelve / row.twelve - 1.0])
    });
    let product_ahead = report.transfers()[1][0][1] * 1e-3 * CLOCK_HZ / f64::from(paper::TRANSFER_VECTORS);
    let blocking = 100.0 * (report.transfers()[0][0][0] / paper::TABLE_7_1[0][0] - 1.0);
    let texture = |launch, qpus| {
        let spent = report.find(launch, 128, qpus).spent;
        format!("{:.0}", 100.0 * spent.texture as f64 / spent.total() as f64)
    };
    vec![
        ("invocation", format!("{:.1}", 1e6 * INVOCATION)),
        ("host_call", format!("{:.0}", 1e6 * HOST_CALL)),
        ("host_long_call", format!("{:.0}", 1e6 * HOST_LONG_CALL)),
        ("long_call", format!("{:.2}", 1e3 * LONG_CALL)),
        ("host_byte", format!("{:.0}", 1e9 * HOST_BYTE)),
        ("largest_difference", largest(kernel.collect())),
        ("largest_middle", largest(middle.collect())),
        ("largest_decryption", largest(decryption.collect())),
        ("product_ahead", format!("{product_ahead:.0}")),
        ("factor_of_12", format!("{factor:.2}")),
        ("bitslice_factor", format!("{:.1}", last.1.bitslice / last.0.kernel)),
        ("bitslice_ecb_rate", rate(ecb(false))),
        // The seconds for a byte are the sum of the kernel's time for the byte and the time of its copies.
        ("bitslice_with_copies", format!("{:.0}", 1e-6 / (1e-3 / last.1.bitslice + HOST_BYTE))),
        ("packed_fast", clocks(Launch::PackedFastDecryption, 128, 12)),
        ("packed_fast_percent", {
            let fast = report.find(Launch::PackedFastDecryption, 128, 12);
            format!("{:.0}", 100.0 * twelve.clocks_of_turn / fast.clocks_of_turn)
        }),
        ("cbc_encrypt", clocks(chain, 128, 12)),
        ("cbc_encrypt_rate", rate(chain)),
        ("bitslice_ctr_rate", rate(Launch::Ctr)),
        ("ctr_128", clocks(Launch::Ctr, 128, 12)),
        ("ctr_256", clocks(Launch::Ctr, 256, 12)),
        ("tuned", clocks(Launch::PackedTuned { decrypts: false }, 128, 1)),
        ("tuned_12", clocks(Launch::PackedTuned { decrypts: false }, 128, 12)),
        ("tuned_texture", texture(Launch::PackedTuned { decrypts: false }, 12)),
        ("packed", clocks(packed(false), 128, 1)),
        ("packed_12", clocks(packed(false), 128, 12)),
        ("packed_decrypt", clocks(packed(true), 128, 12)),
        ("blocking_difference", format!("{:.0}", blocking)),
        ("table_7_2_open", format!("{:.0}", paper::TABLE_7_2[11][0])),
        ("naive_waits", format!("{:.0}", report.first_kernel()[0].clocks[1])),
        ("naive_instructions", format!("{:.0}", report.first_kernel()[0].clocks[0])),
        ("packed_turn_1", format!("{:.0}", one.clocks_of_turn)),
        ("packed_turn_12", format!("{:.0}", twelve.clocks_of_turn)),
    ]
}
