
use lockstep::Engine;

#[test]
fn simulated_devices_are_made_by_name() {
    super::register();
    let engine = Engine::builder().device("spu:4").build().unwrap();
    assert_eq!(engine.devices()[0].description(), "Cell with 4 SPEs");
    let error = Engine::builder().device("spu:17").build().unwrap_err().to_string();
    assert!(error.contains("spu:17") && error.contains("spu:1 to spu:16"), "{error}");
    for name in ["cuda:emu", "qpu"] {
        let engine = Engine::builder().device(name).build().unwrap();
        assert_eq!(engine.devices()[0].id().to_string(), name);
    }
}
