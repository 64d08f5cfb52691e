use super::shared_engine;

#[test]
fn no_driver_is_started_unless_the_environment_names_a_device() {
    let engine = shared_engine().unwrap();
    let names: Vec<_> = engine.devices().iter().map(|device| device.id().to_string()).collect();
    assert_eq!(names, ["cpu"]);
    assert!(engine.missing().is_empty(), "no other backend was asked");
}
