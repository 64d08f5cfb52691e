use super::*;

#[test]
fn a_figure_that_the_model_does_not_have_is_refuted() {
    let status = |model| Row::new("a figure", 100.0, model, 15.0).status;
    assert_eq!([85.5, 114.5].map(status), [Status::Predicted; 2]);
    assert_eq!([84.5, 115.5, f64::NAN, f64::INFINITY].map(status), [Status::Refuted; 4]);
}
