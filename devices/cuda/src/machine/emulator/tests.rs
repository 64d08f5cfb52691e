
use super::*;

const ANY: StreamHandle = StreamHandle(0);

#[test]
fn a_wild_address_is_an_error() {
    let emulator = Emulator::new();
    let address = emulator.allocate(100).unwrap();
    assert!(emulator.hold(address, 100).is_ok());
    assert!(emulator.hold(address + 1, 100).is_err());
    assert!(emulator.hold(16, 1).is_err());
    assert!(emulator.hold(address, usize::MAX).is_err());
    // SAFETY: the memory was allocated above, and nothing uses it.
    unsafe { emulator.free(address, 100) };
    assert!(emulator.hold(address, 1).is_err());
}

#[test]
fn an_unknown_kernel_loses_the_machine() {
    let emulator = Emulator::new();
    let entry = Entry { module: "none", name: "no_such_kernel" };
    assert!(emulator.lacks(entry));
    let shape = Shape { grid: 1, threads: 1, shared: 0 };
    // SAFETY: no kernel has this name, so nothing runs.
    unsafe { emulator.launch(ANY, entry, shape, &[]) }.unwrap();
    assert!(matches!(emulator.synchronise(), Err(Fault::Lost(_))));
    let event = emulator.record(ANY).unwrap();
    assert!(matches!(emulator.is_past(event), Err(Fault::Lost(_))));
}
