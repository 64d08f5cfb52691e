//! The known-answer test of the carry-less multiply-add. Kernels that use this instruction run only on devices that pass the
//! test. All other devices use the kernels with integers or tensor units.
#![allow(unsafe_code, reason = "a launch: the kernel gets addresses of device memory")]

use std::sync::Arc;

use lockstep_core::Result;

use crate::gpu::Gpu;
use crate::kernel::{helper, one_each};
use crate::launch::Parameters;

/// Number of products of the test. They occupy more than one thread block.
const PRODUCTS: usize = 512;

/// Two factors and a summand.
type Input = [u64; 3];

/// True if GHASH multiplies by the carry-less multiply-add on this device. If machine code of these kernels is available, the
/// first call runs the test, which takes one launch. The result is false if the kernels cannot be loaded or launched.
pub(crate) fn is_used(gpu: &Arc<Gpu>) -> bool {
    *gpu.carry_less_result().get_or_init(|| gpu.has_machine_code(helper::CARRY_LESS) && is_proven(gpu))
}

/// Runs the test.
fn is_proven(gpu: &Arc<Gpu>) -> bool {
    let inputs = inputs();
    let expected: Vec<[u64; 2]> = inputs.iter().map(result).collect();
    results(gpu, &inputs).is_ok_and(|results| results == expected)
}

/// Computes the products on the device.
fn results(gpu: &Arc<Gpu>, inputs: &[Input]) -> Result<Vec<[u64; 2]>> {
    let input_bytes: Vec<u8> = inputs.iter().flatten().flat_map(|number| number.to_ne_bytes()).collect();
    let (from, to) = (gpu.buffer(input_bytes.len())?, gpu.buffer(16 * inputs.len())?);
    let (mut host, stream) = (gpu.pinned(input_bytes.len().max(to.len()))?, gpu.stream()?);
    host[..input_bytes.len()].copy_from_slice(&input_bytes);
    gpu.copy_in(&stream, &mut host, 0..input_bytes.len(), &from, 0)?;
    let parameters = Parameters::default().long(from.address()).long(to.address()).word(inputs.len() as u32);
    if let Some(shape) = one_each(inputs.len() as u64) {
        // SAFETY: for each input, the kernel reads this input and writes a product. Both buffers are large enough for all
        // inputs, and their drop waits for the machine.
        unsafe { gpu.launch(&stream, helper::CARRY_LESS_PRODUCTS, shape, parameters.bytes(), 0)? };
    }
    let len = to.len();
    gpu.copy_out(&stream, &to, 0, &mut host, 0..len)?;
    gpu.record(&stream)?.wait()?;
    let numbers: Vec<u64> =
        host[..len].as_chunks().0.iter().map(|bytes| u64::from_ne_bytes(*bytes)).collect();
    Ok(numbers.as_chunks().0.to_vec())
}

/// The inputs of the test: single bits, zeros, ones, and numbers without a pattern.
fn inputs() -> Vec<Input> {
    let mut seed = 0x9E37_79B9_7F4A_7C15u64;
    let mut number = move || {
        // xorshift64 (Marsaglia 2003).
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let bits = (0..64).map(|i| [1 << i, 1 << (63 - i), 0]);
    let all = [[u64::MAX, u64::MAX, 0], [0, u64::MAX, u64::MAX], [u64::MAX, 1, 1 << 63]];
    let mut inputs: Vec<Input> = bits.chain(all).collect();
    inputs.resize_with(PRODUCTS, || [number(), number(), number()]);
    inputs
}

/// Both halves of the product of two factors, as polynomials over GF(2). The summand is added to each half.
fn result(&[a, b, sum]: &Input) -> [u64; 2] {
    let terms = (0..64).filter(|i| b >> i & 1 == 1).map(|i| u128::from(a) << i);
    let product = terms.fold(0, |sum, term| sum ^ term);
    [product as u64 ^ sum, (product >> 64) as u64 ^ sum]
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use super::*;

    #[test]
    fn results_are_products_of_polynomials() {
        // (x + 1)^2 = x^2 + 1, and x^63 x^63 = x^126.
        assert_eq!(result(&[3, 3, 0]), [5, 0]);
        assert_eq!(result(&[1 << 63, 1 << 63, 7]), [7, 1 << 62 ^ 7]);
        assert!(inputs()[100..].iter().all(|[a, b, sum]| a != b && b != sum));
    }
}
