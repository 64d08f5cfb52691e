"""Tests of the tool on small kernels. `tools/kernel_report.py --self-test` runs them."""

import os
import random
import re
import struct
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

import aes
import inputs
import lift
import report
import sass
import taint
import toolkit
from image import GLOBALS, Image
from machine import REGION, Machine

FROM, TO = 1, 2


def compiled(name, defines=()):
    done = toolkit.compile_source(toolkit.folder(), os.path.join(HERE, name), report.ARCH, defines)
    image = Image(done.cubin)
    return report.functions_of(done, image), image, toolkit.resources(done.resources)


class Samples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.functions, cls.image, cls.resources = compiled("samples.cu")

    def found(self, name):
        findings, _ = taint.analyse(f"{name}_expand_128", self.functions[f"{name}_expand_128"], self.image)
        return set(findings)

    def run_sample(self, name, data, count, threads=32):
        memory = {FROM: bytearray(data), TO: bytearray(4096), GLOBALS >> REGION: self.image.variables}
        program = inputs.program_of(f"{name}_expand_128", self.functions, self.image)
        parameters = struct.pack("<QQI", FROM << REGION, TO << REGION, count)
        return Machine(memory).launch(program, parameters, 1, threads, 0, [0]), memory[TO]

    def test_what_leaks_is_found(self):
        self.assertTrue(self.found("branch") & {"branch", "guard"})
        self.assertEqual(self.found("lookup"), {"address"})
        self.assertEqual(self.found("shared_lookup"), {"address"})
        self.assertIn("address", self.found("detour"))
        self.assertIn("branch", self.found("trip"))

    def test_what_does_not_leak_is_not_found(self):
        for name in ("loop", "choose", "conflict"):
            self.assertEqual(self.found(name), set(), name)

    def test_executed_trips_are_counted(self):
        few, _ = self.run_sample("loop", bytes(range(32)), 10)
        many, _ = self.run_sample("loop", bytes(range(32)), 110)
        self.assertEqual((many["issue:"] - few["issue:"]) % 100, 0)
        self.assertGreaterEqual(many["IMAD"] - few["IMAD"], 100)

    def test_loop_result(self):
        _, to = self.run_sample("loop", bytes(range(32)), 9)
        for lane in range(32):
            total = lane
            for i in range(9):
                total = total * (total | 5) + i & 0xFFFFFFFF
            self.assertEqual(struct.unpack_from("<I", to, 4 * lane)[0], total)

    def test_lanes_that_part_meet_again(self):
        data = bytes(random.Random(1).randrange(20) for _ in range(32))
        counts, to = self.run_sample("trip", data, 0)
        for lane in range(32):
            total = 0
            for i in range(data[lane]):
                total = total * (total | 5) + i & 0xFFFFFFFF
            self.assertEqual(to[lane], total & 255)
        # The count is that of the longest lane, not the sum of all lanes.
        self.assertLess(counts["IMAD"], 4 * max(data) + 8)

    def test_banks(self):
        counts, _ = self.run_sample("conflict", bytes(32), 3)
        self.assertEqual(counts["wavefronts:shared"], 1 + 32)

    def test_arithmetic(self):
        mask = (1 << 64) - 1

        def signed(x):
            return x - (1 << 32) if x >> 31 else x

        for seed in range(20):
            words = [random.Random(100 * seed + i).getrandbits(32) for i in range(96)]
            _, to = self.run_sample("arithmetic", struct.pack("<96I", *words), 0)
            for lane in range(32):
                a, b, c = words[lane], words[lane + 32], words[lane + 64]
                wide, other = a << 32 | b, c << 32 | a
                shifted = (wide >> (c & 63) | other << (a & 31)) & mask
                both = b << 32 | a
                permuted = sum((both >> 8 * (0x2613 >> 4 * i & 7) & 255) << 8 * i for i in range(4))
                funnel = (b << 32 | a) << (c & 31) >> 32 & 0xFFFFFFFF
                mixed = permuted ^ funnel ^ (a & b | c & ~a) ^ (wide < other)
                result = (wide + other) ^ (wide - other) ^ wide * other ^ shifted ^ mixed << 13
                result = (result ^ (signed(a) >> (b & 31) & 0xFFFFFFFF)) & mask
                result = result * 3 + (11 if a > c else 5) if signed(a) < signed(b) else result - 8 * other
                result ^= 0x5555 if wide >> (c & 63) & 1 else 0
                self.assertEqual(struct.unpack_from("<Q", to, 8 * lane)[0], result & mask, (seed, lane))

    def test_joined_predicates(self):
        # LOP3 joins its predicate with another one; `arithmetic` must contain such an instruction for its test to cover it.
        texts = [one.text for one in self.functions["arithmetic_expand_128"]]
        self.assertTrue(any(re.search(r"LOP3\.LUT P\d, .*, P\d$", text) for text in texts), texts)

    def test_resources(self):
        self.assertEqual(self.resources["conflict_expand_128"]["shared"], 4096)
        self.assertEqual(self.resources["loop_expand_128"]["spill_loads"], 0)
        self.assertGreater(self.resources["loop_expand_128"]["registers"], 0)


class Leak(unittest.TestCase):
    def test_an_early_exit_is_found(self):
        for defines, wanted in (((), set()), (("LEAK",), {"branch"})):
            functions, image, _ = compiled("leaky.cu", defines)
            findings, _ = taint.analyse("sample_ecb_encrypt_128", functions["sample_ecb_encrypt_128"], image)
            self.assertEqual(set(findings), wanted)


class Small(unittest.TestCase):
    def test_aes(self):
        """FIPS 197, appendix B and C."""
        keys = aes.expand(bytes(range(32)))
        block = bytes.fromhex("00112233445566778899aabbccddeeff")
        self.assertEqual(aes.encrypt(keys, block).hex(), "8ea2b7ca516745bfeafc49904b496089")
        self.assertEqual(aes.decrypt(keys, aes.encrypt(keys, block)), block)

    def test_ghash(self):
        """The GCM specification's test case 2."""
        import others

        h = bytes.fromhex("66e94bd4ef8a2c3b884cfa59ca342b2e")
        data = bytes.fromhex("0388dace60b6a392f328c2b971b2fe78" + "00000000000000000000000000000080")
        self.assertEqual(others.ghash(h, bytes(16), data).hex(), "f38cbb1ad69223dcc3457ae5b6b0f885")

    def test_unknown_kernels_are_an_error(self):
        with self.assertRaises(sass.Problem):
            inputs.family_of("mystery_128")
        with self.assertRaises(sass.Problem):
            inputs.parameters_of("mystery_128")
        with self.assertRaises(sass.Problem):
            sass.pipe(sass.Instruction(0, "MYSTERY R1, R2"))

    def test_operands(self):
        one = sass.Instruction(16, "@!P2 IADD3.X R5, R6.reuse, ~R7, RZ, P1, !PT")
        self.assertTrue(one.guard.negated)
        self.assertEqual([o.kind for o in one.operands], ["R", "R", "R", "R", "P", "P"])
        self.assertTrue(one.operands[2].inverted)
        place = sass.Instruction(16, "STG.E.128 desc[UR4][R2.64+-0x10], R8").operands[0]
        self.assertEqual((place.kind, place.base, place.number), ("M", ("R", 2), -16))

    def test_bound(self):
        # Design: 31.3 LOP3 a byte are 474 GB/s.
        limit, rate = report.bound({"pipe:alu": 31.3 / 32, "issue:": 1}, 2)
        self.assertEqual(limit, "ALU")
        self.assertAlmostEqual(rate, 474, delta=1)

    def test_products_of_bits(self):
        # Row 9 has bits 3 and 130, column 6 has bits 3, 40 and 130: two in common, which are added to 5.
        left, right, sums = ([[0] * 32 for _ in range(count)] for count in (4, 2, 4))
        left[1][4 * 1] |= 1 << 3
        left[3][4 * 1] |= 1 << 2
        right[0][4 * 6] |= 1 << 3
        right[0][4 * 6 + 1] |= 1 << 8
        right[1][4 * 6] |= 1 << 2
        sums[2][4 * 1 + 3] = 5
        result = lift.product_of_bits(left, right, sums)
        self.assertEqual(result[2][4 * 1 + 3], 7)
        self.assertEqual(sum(map(sum, result)), 7)

    def test_carry_less_products(self):
        # (x^63 + 1)^2 = x^126 + 1, and (x + 1)(x^2 + x + 1) = x^3 + 1.
        self.assertEqual(lift.carry_less_product(1 << 63 | 1, 1 << 63 | 1), 1 << 126 | 1)
        self.assertEqual(lift.carry_less_product(3, 7), 9)
        self.assertEqual(sass.pipe(sass.Instruction(0, "CLMAD.LO R10, R8, UR6, RZ")), "carry_less")

    def test_bars(self):
        good = {name: {"spill_stores": 0, "spill_loads": 0, "stack": 0, "local": 0, "by_secret": {}} for name, _, _ in report.BARS}
        for name, what, bar in report.BARS:
            good[name][what] = bar
            if name.startswith("table"):
                good[name]["by_secret"] = {"address": 160}
        for _, kernels, bar in report.MODES:
            for name in kernels:
                good.setdefault(name, {"spill_stores": 0, "spill_loads": 0, "stack": 0, "local": 0, "by_secret": {}})["rate"] = 1000
        self.assertEqual(report.complaints(good), [])
        # GCM and GCM-SIV both use this kernel, and both have a bar.
        good["ghash_tensor_tiles"]["rate"] = 100
        self.assertEqual(len(report.complaints(good)), sum("ghash_tensor_tiles" in kernels for _, kernels, bar in report.MODES if bar))
        good["ghash_tensor_tiles"]["rate"] = 1000
        good["bitslice_ctr_128"].update(alu=33.1, stack=8)
        good["bitslice_ctr_256"]["by_secret"] = {"branch": 1}
        good["table_ctr_128"]["by_secret"] = {}
        self.assertEqual(len(report.complaints(good)), 4)


if __name__ == "__main__":
    unittest.main()
