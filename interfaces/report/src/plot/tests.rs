use super::*;

fn plot(scale: Scale, points: Vec<(f64, f64)>) -> String {
    let lines = vec![Line { name: "a < b".into(), points, spread: Vec::new() }];
    let marks = vec![(2048.0, "here".into())];
    let across = ("bytes".into(), bytes as fn(f64) -> String);
    Plot { title: "T".into(), across, up: "GB/s".into(), scale, lines, marks }.svg()
}

#[test]
fn axes_end_at_round_numbers() {
    let ends = |axis: Axis| (axis.low, axis.high);
    assert_eq!(ends(Axis::powers_of_two((4096.0, 65536.0))), (4096.0, 65536.0));
    assert_eq!(ends(Axis::powers_of_two((16.0, 16.0))), (16.0, 32.0));
    assert_eq!(ends(Axis::decades((0.3, 250.0))), (0.2, 500.0));
    assert_eq!(ends(Axis::decades((1000.0, 1000.0))), (1000.0, 2000.0));
    assert_eq!(ends(Axis::even((0.0, 1.93))), (0.0, 2.0));
    assert_eq!(Axis::even((0.0, 7.5)).labels, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    assert_eq!(extent([0.0].into_iter(), Scale::Logarithmic), None);
    assert_eq!(extent([0.0, f64::NAN].into_iter(), Scale::Even), Some((0.0, 0.0)));
}

#[test]
fn points_lie_where_their_values_are() {
    let svg = plot(Scale::Logarithmic, vec![(1024.0, 1.0), (4096.0, 100.0)]);
    assert!(svg.contains("M70.0 374.0L710.0 34.0"), "{svg}");
    assert!(svg.contains(">2 Ki<") && svg.contains("a &lt; b"));
    // The value of the mark is in the middle of the horizontal axis.
    assert!(svg.contains("M390.0 34V374") && svg.contains(">here<"), "{svg}");
    assert!(plot(Scale::Logarithmic, Vec::new()).contains("nothing was measured"));
    let svg = plot(Scale::Even, vec![(0.0, 0.0), (4.0, 2.0)]);
    assert!(svg.contains("M70.0 374.0L710.0 34.0"), "{svg}");
}
