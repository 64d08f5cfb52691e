// GHASH and POLYVAL by carry-less multiplication (common/carry_less.cuh). This file has the kernels of ghash.cu with other
// products, and the test that a device must pass before these kernels are used.
#include "../common/carry_less.cuh"
#include "hashing.cuh"

#if HAS_CARRY_LESS

namespace {

// The second factor of a product: the lower and the upper half of an element, and the sum of both.
struct CarryLessFactor {
    u64 low, high, both;

    __device__ static inline CarryLessFactor of(const Element &element) {
        u64 low = element.word[0] | (u64)element.word[1] << 32, high = element.word[2] | (u64)element.word[3] << 32;
        return {low, high, low ^ high};
    }
};

// a times b times x^-128: Karatsuba's rule, then reduction from the low end.
__device__ inline Element times(const Element &a, const CarryLessFactor &b) {
    u64 low = a.word[0] | (u64)a.word[1] << 32, high = a.word[2] | (u64)a.word[3] << 32;
    u64 sum0 = carry_less_low(low, b.low, 0), sum3 = carry_less_high(high, b.high, 0);
    // The upper half of the lower product and the lower half of the upper product occur in both middle words.
    u64 inner = carry_less_high(low, b.low, carry_less_low(high, b.high, 0));
    u64 sum1 = carry_less_low(low ^ high, b.both, inner ^ sum0), sum2 = carry_less_high(low ^ high, b.both, inner ^ sum3);
    // 1 = x^121 + x^126 + x^127 + x^128: so each of the two low words is added at these positions.
    constexpr u64 polynomial = 0xC200000000000000;
    sum1 = carry_less_low(sum0, polynomial, sum1);
    sum2 = carry_less_high(sum0, polynomial, sum2 ^ sum0);
    sum2 = carry_less_low(sum1, polynomial, sum2);
    sum3 = carry_less_high(sum1, polynomial, sum3 ^ sum1);
    return {{(u32)sum2, (u32)(sum2 >> 32), (u32)sum3, (u32)(sum3 >> 32)}};
}

}  // namespace

GHASH_KERNELS(ghash_carry_less, CarryLessFactor)

// The known-answer test: results 2 i and 2 i + 1 are the halves of the product of inputs 3 i and 3 i + 1, plus input 3 i + 2.
KERNEL(carry_less_products, (const u64 *inputs, u64 *results, u32 count)) {
    u64 index = thread_number();
    if (index >= count) return;
    const u64 *input = inputs + 3 * index;
    results[2 * index] = carry_less_low(input[0], input[1], input[2]);
    results[2 * index + 1] = carry_less_high(input[0], input[1], input[2]);
}

#endif
