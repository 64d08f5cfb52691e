//! Runs the shared suite on the simulated Cell.

use std::sync::Arc;

use lockstep_core::backend::Device;
use lockstep_spu::device::Spu;

fn spes(spes: u16) -> Arc<dyn Device> {
    Arc::new(Spu::with_spes(spes).expect("1 to 16"))
}

lockstep_testkit::backend_suite!(vperm, spes(8), "spu/vperm");
lockstep_testkit::backend_suite!(gcm, spes(16), "spu/gcm");
lockstep_testkit::backend_suite!(ctr_vperm, spes(3), "spu/ctr-vperm");
lockstep_testkit::backend_suite!(ctr0, spes(1), "spu/ctr0");
lockstep_testkit::backend_suite!(ctr1, spes(1), "spu/ctr1");
lockstep_testkit::backend_suite!(ctr2, spes(2), "spu/ctr2");
lockstep_testkit::backend_suite!(ctr4a, spes(8), "spu/ctr4a");
lockstep_testkit::backend_suite!(ctr4, spes(8), "spu/ctr4");
lockstep_testkit::backend_suite!(tab1, spes(1), "spu/tab1");
lockstep_testkit::backend_suite!(tab2, spes(8), "spu/tab2");
lockstep_testkit::backend_suite!(tab4, spes(8), "spu/tab4");
lockstep_testkit::backend_suite!(tab4_cached, spes(8), "spu/tab4-cached");
lockstep_testkit::backend_suite!(tab4_decrypt, spes(8), "spu/tab4-decrypt");
lockstep_testkit::backend_suite!(cbc1, spes(8), "spu/cbc1");
lockstep_testkit::backend_suite!(cbc2, spes(1), "spu/cbc2");
lockstep_testkit::backend_suite!(ecb1, spes(1), "spu/ecb1");
lockstep_testkit::backend_suite!(ecb4a, spes(8), "spu/ecb4a");
lockstep_testkit::backend_suite!(ecb4, spes(8), "spu/ecb4");
lockstep_testkit::backend_suite!(ecb_decrypt, spes(8), "spu/ecb-decrypt");
lockstep_testkit::backend_suite!(cbc_decrypt, spes(8), "spu/cbc-decrypt");
