
use super::*;

#[test]
fn tables_in_markdown() {
    let mut table = Table::new("Rates", &["who", "Gbit/s"], 1);
    table.rows.push(vec!["ours".into(), "12.5".into()]);
    assert_eq!(markdown(&table), "| who | Gbit/s |\n|---|--:|\n| ours | 12.5 |\n");
}
