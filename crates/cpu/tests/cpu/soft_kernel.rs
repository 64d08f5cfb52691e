//! The portable kernel against the oracle.

use crate::kernel_checks;

use lockstep_cpu::soft::Soft;

kernel_checks::checks!(Soft: fips_197, ecb, ctr, cbc_decrypt, cfb128_decrypt, xts, ghash, cbc_encrypt, each);
