
use super::*;

#[test]
fn the_variable_is_parsed_completely_or_refused() {
    let every = Every::parse("launch:50,copy:23").unwrap();
    assert_eq!((every.launch, every.copy, every.wait), (50, 23, 0));
    for wrong in ["", "launch", "launch:", "launch:x", "lunch:5", "launch:5,"] {
        assert!(Every::parse(wrong).is_none(), "{wrong}");
    }
}

#[test]
fn each_kind_fails_at_its_number() {
    let every = Every::parse("allocation:2,launch:3,wait:1,copy:2,lost:5").unwrap();
    let control = Control { every, ..Control::default() };
    let failed = |outcome: Outcome<()>| matches!(outcome, Err(Fault::Failed(_)));
    assert_eq!([(); 4].map(|()| failed(control.allocate())), [false, true, false, true]);
    assert!(failed(control.wait()));
    assert_eq!([0, 1, 2, 3].map(|number| control.is_wrong_copy(number)), [false, true, false, true]);
    assert_eq!([(); 4].map(|()| failed(control.launch())), [false, false, true, false]);
    assert!(matches!(control.launch(), Err(Fault::Lost(_))));
    assert!(matches!(control.allocate(), Err(Fault::Lost(_))));
}
