//! Pipe diagrams as pictures: a row for each round, a column for each cycle, the even pipe above the odd one.

use std::fmt::Write;

use lockstep_spu::isa::Class;

use super::window::{Cycle, Lost, Window};

/// The colours of the cells, with their meaning.
const COLOURS: [(&str, &str); 9] = [
    ("#4e79a7", "arithmetic, logic"),
    ("#76b7b2", "word shift"),
    ("#59a14f", "shuffle, quadword shift"),
    ("#edc948", "load"),
    ("#f28e2b", "store"),
    ("#9c755f", "branch, hint"),
    ("#c9c9c9", "nop, lnop"),
    ("#e15759", "lost: dependency, hint"),
    ("#7b3f6e", "lost: branch"),
];

const LANE: usize = 12;
const BETWEEN: usize = 4;
const GAP: usize = 8;
const LEFT: usize = 64;
const TOP: usize = 30;
const ROW: usize = 2 * LANE + BETWEEN + GAP;

fn colour(class: Class) -> usize {
    match class {
        Class::Fx => 0,
        Class::Ws => 1,
        Class::Sh => 2,
        Class::Ls => 3,
        Class::St => 4,
        Class::Br | Class::Hb => 5,
        Class::Nop | Class::Lnop => 6,
    }
}

/// The colour of each lane in a cycle.
fn lanes(cycle: &Cycle) -> [Option<usize>; 2] {
    match cycle.lost {
        Some(Lost::Branch) => [Some(8); 2],
        Some(_) => [Some(7); 2],
        None => cycle.pipes.map(|issue| issue.map(|issue| colour(issue.op.class()))),
    }
}

/// A window as SVG, with `row` cycles in a row.
pub(super) fn svg(window: &Window, row: usize) -> String {
    let rows: Vec<&[Cycle]> = window.cycles.chunks(row).collect();
    let cell = (860 / row).clamp(6, 20);
    let width = (LEFT + row * cell + 10).max(760);
    let height = TOP + rows.len() * ROW + 56;
    let mut paths: Vec<String> = vec![String::new(); COLOURS.len()];
    let mut dual = String::new();
    let mut names = String::new();
    for (i, cycles) in rows.iter().enumerate() {
        let y = TOP + i * ROW;
        let first = cycles[0].number - window.cycles[0].number;
        // Writing to a string cannot fail.
        let _ =
            writeln!(names, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{first}</text>", LEFT - 6, y + 18);
        for lane in 0..2 {
            let y = y + lane * (LANE + BETWEEN);
            for (start, len, colour) in runs(cycles, |cycle| lanes(cycle)[lane]) {
                rectangle(&mut paths[colour], LEFT + start * cell, y, len * cell, LANE);
            }
        }
        for (start, len, ()) in runs(cycles, |cycle| cycle.is_dual().then_some(())) {
            rectangle(&mut dual, LEFT + start * cell, y + LANE + 1, len * cell, BETWEEN - 2);
        }
    }
    let title = &window.title;
    let mut out = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"
  font-family="sans-serif" font-size="11">
<title>{title}</title>
<desc>{}</desc>
<rect width="{width}" height="{height}" fill="#fff"/>
<text x="10" y="18" font-size="13">{title}</text>
"##,
        window.summary()
    );
    for (path, (fill, _)) in paths.iter().zip(COLOURS).filter(|(path, _)| !path.is_empty()) {
        let _ = writeln!(out, "<path fill=\"{fill}\" d=\"{path}\"/>");
    }
    let _ = writeln!(out, "<path fill=\"#000\" d=\"{dual}\"/>");
    // Thin lines between the cycles, across all rows.
    let mut lines = String::new();
    for column in 1..row {
        let _ = write!(lines, "M{} {TOP}v{}", LEFT + column * cell, rows.len() * ROW - GAP);
    }
    let _ = writeln!(out, "<path stroke=\"#fff\" stroke-width=\"0.8\" d=\"{lines}\"/>");
    out += &names;
    let y = TOP + rows.len() * ROW + 14;
    legend(&mut out, y);
    out += "</svg>\n";
    out
}

fn legend(out: &mut String, y: usize) {
    for (i, (fill, words)) in COLOURS.iter().enumerate() {
        let (x, y) = (LEFT + i % 5 * 140, y + i / 5 * 18);
        let _ = write!(out, "<rect x=\"{x}\" y=\"{}\" width=\"10\" height=\"10\" fill=\"{fill}\"/>", y - 9);
        let _ = writeln!(out, "<text x=\"{}\" y=\"{y}\">{words}</text>", x + 14);
    }
    let (x, y) = (LEFT + 4 * 140, y + 18);
    let _ = write!(out, "<rect x=\"{x}\" y=\"{}\" width=\"10\" height=\"2\"/>", y - 5);
    let _ = writeln!(out, "<text x=\"{}\" y=\"{y}\">dual issue</text>", x + 14);
}

fn rectangle(path: &mut String, x: usize, y: usize, width: usize, height: usize) {
    let _ = write!(path, "M{x} {y}h{width}v{height}h-{width}z");
}

/// Runs of equal neighbours; cycles without a value are skipped.
fn runs<T: PartialEq>(cycles: &[Cycle], of: impl Fn(&Cycle) -> Option<T>) -> Vec<(usize, usize, T)> {
    let mut runs: Vec<(usize, usize, T)> = Vec::new();
    for (i, cycle) in cycles.iter().enumerate() {
        let Some(what) = of(cycle) else { continue };
        match runs.last_mut() {
            Some((start, len, same)) if *start + *len == i && *same == what => *len += 1,
            _ => runs.push((i, 1, what)),
        }
    }
    runs
}
