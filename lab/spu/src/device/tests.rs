
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::isa::Reg;

#[test]
fn an_spe_is_cleared_after_use_and_after_a_panic() {
    let mut machine = Machine::new();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let lent = ExclusiveUse(&mut machine);
        lent.0.memory_mut(4096..4112).fill(7);
        lent.0.set_register(Reg::new(3), 7);
        panic!("while it holds a key");
    }));
    assert!(panicked.is_err());
    assert_eq!(machine.memory(0..crate::sim::LOCAL_STORE), [0; crate::sim::LOCAL_STORE]);
    assert_eq!(machine.register(Reg::new(3)), 0);
}
