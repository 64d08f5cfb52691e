//! The portable kernel against the oracle, with registers of every width.

use crate::kernel_checks::kernel_suite;

use lockstep_cpu::kernel::{Block, Kernel, Lane, Span};
use lockstep_cpu::soft::{HashKey, Schedule, Soft, Width};

/// Defines a kernel that is [`Soft`] with a fixed width.
macro_rules! of_width {
    ($kernel:ident = $width:ident, $name:literal) => {
        #[derive(Clone, Copy)]
        struct $kernel(Soft);

        impl Kernel for $kernel {
            type Schedule = Schedule;
            type HashKey = HashKey;

            const NAME: &'static str = $name;

            fn detect() -> Option<Self> {
                let kernel = Soft::of_width(Width::$width)?;
                assert_eq!(kernel.width(), Width::$width);
                Some($kernel(kernel))
            }

            of_width! { @same
                expand(key: &[u8]) -> Schedule;
                ecb_encrypt(key: &Schedule, data: Span<'_>) -> ();
                ecb_decrypt(key: &Schedule, data: Span<'_>) -> ();
                ctr(key: &Schedule, counter: &mut Block, data: Span<'_>) -> ();
                ctr32(key: &Schedule, counter: &mut Block, data: Span<'_>) -> ();
                cbc_decrypt(key: &Schedule, iv: &mut Block, data: Span<'_>) -> ();
                cfb128_decrypt(key: &Schedule, iv: &mut Block, data: Span<'_>) -> ();
                xts_encrypt(key: &Schedule, tweak: &mut Block, data: Span<'_>) -> ();
                xts_decrypt(key: &Schedule, tweak: &mut Block, data: Span<'_>) -> ();
                hash_key(h: &Block) -> HashKey;
                ghash(key: &HashKey, state: &mut Block, data: &[u8]) -> ();
                cbc_encrypt(lanes: &mut [Lane<'_, Schedule>]) -> ();
                encrypt_each(keys: &[&Schedule], blocks: &mut [Block]) -> ();
                decrypt_each(keys: &[&Schedule], blocks: &mut [Block]) -> ();
            }
        }
    };

    (@same $($name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(self, $($arg: $type),*) -> $result {
            self.0.$name($($arg),*)
        })*
    };
}

of_width!(Portable = Portable, "cpu/soft with the instructions of every processor");
kernel_suite!(Portable: portable);

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;

    of_width!(Ssse3 = Ssse3, "cpu/soft with SSSE3");
    kernel_suite!(Ssse3: ssse3);
    of_width!(Avx2 = Avx2, "cpu/soft with AVX2");
    kernel_suite!(Avx2: avx2);
    of_width!(Avx512 = Avx512, "cpu/soft with AVX-512");
    kernel_suite!(Avx512: avx512);
}

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod arm {
    use super::*;

    of_width!(Neon = Neon, "cpu/soft with NEON");
    kernel_suite!(Neon: neon);
}

#[test]
fn the_widest_registers_are_chosen() {
    let chosen = Soft::detect().expect("the kernel runs on every processor").width();
    let widest = Width::ALL.iter().rev().find(|width| Soft::of_width(**width).is_some());
    assert_eq!(Some(&chosen), widest);
}
