//! Pictures of the GPU, of the kernels and of the layouts that the CUDA paper's Figures 1 to 4 show, and of the two programs of GPU
//! Gems 3, chapter 36.

use super::boards::GT;
use super::rules::{BANKS, HALF_WARP, shared_passes};
use crate::canvas::{BLOCKS, Canvas, EMPTY, MARKED, PART};

/// The names and the SVG of the pictures.
pub(super) fn all() -> [(&'static str, String); 5] {
    [
        ("figure-1", chip()),
        ("figure-2", grains()),
        ("figure-3", banks()),
        ("figure-4", tables()),
        ("gems", pipelines()),
    ]
}

/// The word of the state that thread `i` of a half-warp accesses first, and the number of words between its four words.
pub(super) type Layout = (fn(u64) -> u64, u64);

/// The layouts of Figure 3 for a half-warp: words 4i to 4i + 3 for thread i, and words i, i + 16, i + 32 and i + 48.
pub(super) const NAIVE: Layout = (|thread| 4 * thread, 1);
pub(super) const GOOD: Layout = (|thread| thread, HALF_WARP as u64);

/// The passes of an access of a half-warp.
pub(super) fn passes((of, _): Layout) -> u32 {
    shared_passes(&(0..HALF_WARP as u64).map(|thread| 4 * of(thread)).collect::<Vec<_>>())
}

fn chip() -> String {
    const SHOWN: usize = 3;
    let mut canvas = Canvas::new(700, 250);
    let all = GT.multiprocessors;
    canvas.words(
        (10, 18),
        &format!("{}: {all} multiprocessors, of which {SHOWN} are shown, at {} MHz", GT.name, GT.clock / 1e6),
    );
    for number in 0..SHOWN {
        let left = 10 + number * 230;
        canvas.cell((left, 30), (220, 140), "#fff", "");
        canvas.words((left + 6, 46), &format!("multiprocessor {number}"));
        for processor in 0..8 {
            canvas.cell((left + 6 + processor * 26, 54), (24, 24), PART, &format!("{processor}"));
        }
        canvas.cell((left + 6, 84), (208, 24), PART, "issue: one warp in 4 clocks");
        canvas.cell((left + 6, 112), (208, 24), PART, "shared memory: 16 KB in 16 banks");
        canvas.cell((left + 6, 140), (208, 24), PART, "cache of constant memory: one port");
    }
    canvas.cell(
        (10, 184),
        (680, 24),
        EMPTY,
        "global memory: 32 bytes for a thread, unless the accesses of a half-warp coalesce",
    );
    canvas.words(
        (10, 236),
        "The model has no texture units. The copies between host and card are not in the times of the paper.",
    );
    canvas.svg("Figure 1: the parts of the GPU in the model")
}

/// Two rounds of an AES block with fine and with coarse grain.
fn grains() -> String {
    const WORD: (usize, usize) = (70, 26);
    let mut canvas = Canvas::new(660, 230);
    for (panel, title) in
        ["fine grain: four threads, a word each", "coarse grain: one thread, four words"].iter().enumerate()
    {
        let left = 10 + panel * 330;
        canvas.words((left, 18), title);
        for round in 0..3 {
            let y = 32 + round * 60;
            for (word, colour) in BLOCKS.into_iter().enumerate() {
                let fill = if panel == 0 { colour } else { BLOCKS[0] };
                canvas.cell((left + word * (WORD.0 + 6), y), WORD, fill, &format!("word {word}"));
            }
            if panel == 0 && round < 2 {
                canvas.cell((left, y + 36), (4 * WORD.0 + 18, 14), MARKED, "barrier");
            }
        }
    }
    canvas.words(
        (10, 214),
        "A row is a round: each word depends on all four words of the row above. A colour is a thread.",
    );
    canvas.svg("Figure 2: fine and coarse grain")
}

/// The two layouts of the state, with the passes of an access by the rules of the model.
fn banks() -> String {
    const CELL: (usize, usize) = (38, 20);
    const LEFT: usize = 60;
    let mut canvas = Canvas::new(LEFT + BANKS as usize * CELL.0 + 10, 290);
    for (panel, (title, layout)) in
        [("naive layout", NAIVE), ("layout of the paper and of Lockstep", GOOD)].into_iter().enumerate()
    {
        let (first, distance) = layout;
        let top = 40 + panel * 130;
        let count = passes(layout);
        let noun = if count == 1 { "pass" } else { "passes" };
        canvas.words((10, top - 16), &format!("{title}: {count} {noun} for an access of 16 threads"));
        for bank in 0..BANKS as usize {
            canvas.words((LEFT + bank * CELL.0 + 12, top - 2), &format!("{bank}"));
        }
        canvas.words((10, top - 2), "bank");
        for thread in 0..HALF_WARP as u64 {
            for word in 0..4 {
                let place = (first(thread) + word * distance) as usize;
                let at = (LEFT + place % BANKS as usize * CELL.0, top + 4 + place / BANKS as usize * CELL.1);
                let fill = if word == 0 { MARKED } else { EMPTY };
                canvas.cell(at, CELL, fill, &format!("{thread}.{word}"));
            }
        }
    }
    canvas.words(
        (10, 276),
        "Each cell is a word of the state: thread and word. All threads access word 0 first (marked).",
    );
    canvas.svg("Figure 3: two layouts of the state in the banks of shared memory")
}

/// The copy of the T-boxes by 256 threads.
fn tables() -> String {
    const CELL: (usize, usize) = (74, 24);
    let mut canvas = Canvas::new(670, 190);
    canvas.words(
        (10, 18),
        "256 threads copy the 1024 words of the T-boxes: thread i copies word i of each table.",
    );
    for (row, colour) in BLOCKS.into_iter().enumerate() {
        let y = 36 + row * (CELL.1 + 6);
        canvas.words((10, y + 16), &format!("T{row}"));
        for warp in 0..8 {
            let threads = format!("{} to {}", 32 * warp, 32 * warp + 31);
            canvas.cell((50 + warp * (CELL.0 + 2), y), CELL, colour, &threads);
        }
    }
    canvas.words(
        (10, 172),
        "Each block of threads makes this copy. With 8 threads, a thread copies 128 words.",
    );
    canvas.svg("Figure 4: the copy of the T-boxes to shared memory")
}

/// The pipelines of the vertex program and of the fragment program, and the words of a block.
fn pipelines() -> String {
    const PART_SIZE: (usize, usize) = (190, 30);
    let mut canvas = Canvas::new(640, 210);
    let programs = [
        (
            "vertex program",
            ["buffer: a block per vertex", "vertex shader, tables", "transform feedback to a buffer"],
        ),
        (
            "fragment program",
            ["texture: a block per texel", "fragment shader, tables", "texture as render target"],
        ),
        ("block", ["4 words of 32 bits, a column each", "4 words in registers", "4 words of 32 bits"]),
    ];
    for (row, (words, parts)) in programs.into_iter().enumerate() {
        let y = 18 + row * 62;
        canvas.words((10, y), words);
        for (number, part) in parts.into_iter().enumerate() {
            let fill = if row == 2 { EMPTY } else { PART };
            canvas.cell((10 + number * (PART_SIZE.0 + 20), y + 8), PART_SIZE, fill, part);
        }
    }
    canvas.words((10, 200), "The parts of a row are connected from left to right.");
    canvas.svg("The two programs of GPU Gems 3, chapter 36")
}
