use super::*;

#[test]
fn both_forms() {
    let mut table = Table::new("Rates", &["who", "Gbit/s"], 1);
    table.rows.push(vec!["ours".into(), "12.5".into()]);
    assert_eq!(table.text(), "Rates\n\n  who   Gbit/s\n  ours    12.5\n");
    table.rows.push(vec!["a<b".into(), "1".into()]);
    assert!(table.html().contains("<td class=\"text\">a&lt;b</td><td class=\"number\">1</td>"));
}

fn wide(cell: usize) -> String {
    let mut table = Table::new("Wide", &["name", "clocks 128", "clocks 256", "off the line"], 1);
    table.rows.push(vec!["n".repeat(10), "1".repeat(cell), "2".repeat(cell), "3".into()]);
    table.text()
}

#[test]
fn heads_take_several_lines_if_they_must() {
    let text = wide(28);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 2 + 3 + 1, "{text}");
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(lines[2]), ["off"]);
    assert_eq!(words(lines[3]), ["the"]);
    assert_eq!(words(lines[4]), ["name", "clocks", "128", "clocks", "256", "line"]);
    assert!(lines.iter().all(|line| line.len() <= WIDTH), "{text}");
}

#[test]
fn columns_that_do_not_fit_follow_below() {
    let text = wide(30);
    let parts: Vec<_> = text.split("\n\n").collect();
    assert_eq!(parts.len(), 3, "{text}");
    // Columns with the same unit stay together, and each part of the table repeats the column of names.
    assert!(parts[1].ends_with(&format!("  {}  {}  {}", "n".repeat(10), "1".repeat(30), "2".repeat(30))));
    assert!(parts[2].ends_with(&format!("  {}        3\n", "n".repeat(10))), "{text}");
    assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
}
