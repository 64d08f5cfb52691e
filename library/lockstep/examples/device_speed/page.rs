//! Writes the rows as Markdown tables.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use super::Result;

/// The kinds of rows, each with the title of its table. The flag is true if the cells are times, and false if they are rates.
const TABLES: [(&str, &str, bool); 9] = [
    ("resident", "One message in device memory", false),
    ("serial", "Messages of 4 KiB in device memory, one key", false),
    ("messages", "Messages with a key each; keys and data in device memory", false),
    ("messages-host-keys", "Messages with a key each; keys on the host, data in device memory", false),
    ("messages-host", "Messages with a key each, in host memory", false),
    ("host-pinned", "Host to host, page-locked memory, and plain copies", false),
    ("host-pageable", "Host to host, ordinary memory, and plain copies", false),
    ("products", "GHASH by the way to multiply", false),
    ("latency", "Small calls on data in device memory: median", true),
];

/// The number of messages and the number of bytes that a column of a table stands for.
type Column = (u64, u64);

pub(crate) fn page(rows: &[Value]) -> Result<String> {
    let mut page =
        String::from("GB/s are 10^9 bytes per second: medians of calls whose outputs were checked.\n");
    for (what, title, is_time) in TABLES {
        let rows: Vec<&Value> = rows.iter().filter(|row| row["what"] == what).collect();
        if !rows.is_empty() {
            table(&mut page, title, is_time, &rows)?;
        }
    }
    for row in rows.iter().filter(|row| row["what"] == "carry-less") {
        writeln!(page, "\nCarry-less multiply-add: {}.", text(&row["skipped"]))?;
    }
    for row in rows {
        if let Some(why) = row["failed"].as_str() {
            writeln!(page, "\nFAILED: {}: {why}", text(&row["name"]))?;
        }
    }
    Ok(page)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn column(row: &Value) -> Column {
    (row["messages"].as_u64().unwrap_or(0), row["bytes"].as_u64().unwrap_or(0))
}

fn table(page: &mut String, title: &str, is_time: bool, rows: &[&Value]) -> Result<()> {
    let columns: BTreeSet<Column> = rows.iter().map(|row| column(row)).collect();
    let head: Vec<String> = columns.iter().map(|&column| heading(column)).collect();
    writeln!(page, "\n## {title}, {}\n", if is_time { "microseconds" } else { "GB/s" })?;
    writeln!(page, "| kernel | operation | key | {} | SM MHz | W |", head.join(" | "))?;
    writeln!(page, "|---|---|---|{}--:|--:|", "--:|".repeat(columns.len()))?;
    let line =
        |row: &Value| (text(&row["pass"]).to_owned(), text(&row["kernel"]).to_owned(), row["bits"].as_u64());
    let mut lines = Vec::new();
    for row in rows {
        if !lines.contains(&line(row)) {
            lines.push(line(row));
        }
    }
    for (operation, kernel, bits) in lines {
        let of_line: Vec<&&Value> =
            rows.iter().filter(|row| line(row) == (operation.clone(), kernel.clone(), bits)).collect();
        let cells: Vec<String> = columns
            .iter()
            .map(|wanted| {
                of_line
                    .iter()
                    .find(|row| column(row) == *wanted)
                    .map_or(String::new(), |row| cell(row, is_time))
            })
            .collect();
        // The clock and the power are those at the largest size.
        let last = of_line.iter().rev().find(|row| row["gpu"].is_object());
        let gpu = |name: &str| {
            last.and_then(|row| row["gpu"][name].as_f64()).map_or(String::new(), |it| format!("{it:.0}"))
        };
        let (bits, cells) = (bits.unwrap_or(0), cells.join(" | "));
        writeln!(
            page,
            "| {kernel} | {operation} | {bits} | {cells} | {} | {} |",
            gpu("sm_mhz"),
            gpu("watts")
        )?;
    }
    Ok(())
}

fn heading((messages, bytes): Column) -> String {
    let size = |bytes: u64| match bytes {
        bytes if bytes >= 1 << 30 && bytes.is_multiple_of(1 << 30) => format!("{} GiB", bytes >> 30),
        bytes if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    };
    if messages > 1 { format!("{messages} x {}", size(bytes / messages)) } else { size(bytes) }
}

fn cell(row: &Value, is_time: bool) -> String {
    let (seconds, bytes) = (row["seconds"].as_f64(), row["bytes"].as_f64().unwrap_or(0.0));
    match seconds {
        Some(seconds) if is_time => format!("{:.1}", seconds * 1e6),
        Some(seconds) => format!("{:.2}", bytes / seconds / 1e9),
        None if row["failed"].is_string() => "failed".into(),
        None => "-".into(),
    }
}
