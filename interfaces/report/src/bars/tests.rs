
use super::*;

#[test]
fn the_longest_bar_is_as_long_as_the_picture() {
    let bar = |series, value| Bar { series, value, spread: (value, value) };
    let bars = Bars {
        title: "T & t".into(),
        series: vec!["a".into(), "b".into()],
        groups: vec![("g".into(), vec![bar(0, 2.0), bar(1, 4.0)])],
    };
    let svg = bars.svg();
    assert!(svg.contains("width=\"270.0\"") && svg.contains("width=\"540.0\""), "{svg}");
    assert!(svg.contains("T &amp; t") && svg.contains(">4.00<"));
}
