"""Tests of what the measurements share."""

import contextlib
import io
import itertools
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import files
import harness


class Rounds(unittest.TestCase):
    def run_order(self, **settings):
        order = []
        contenders = {name: lambda name=name: order.append(name) or len(order) for name in "abc"}
        return harness.alternate(contenders, **settings), order

    def test_contenders_alternate_and_the_warm_up_is_not_counted(self):
        results, order = self.run_order(rounds=2)
        self.assertEqual("".join(order), "abc" + "bca" + "cab")
        self.assertEqual(results, {"a": [6, 8], "b": [4, 9], "c": [5, 7]})
        results, order = self.run_order(rounds=1, warm_up=False)
        self.assertEqual((order, results["b"]), (["b", "c", "a"], [1]))

    def test_time_ends_the_rounds_but_one_is_counted(self):
        results, _ = self.run_order(rounds=1000, seconds=0)
        self.assertEqual([len(taken) for taken in results.values()], [1, 1, 1])

    def test_preparations_are_not_timed(self):
        clock = itertools.count()
        ended = []
        contender = harness.timed(lambda: None, lambda: next(clock))
        results = harness.alternate({"a": contender}, 2, before=lambda: [next(clock) for _ in range(9)], after=ended.append)
        self.assertEqual((results, ended), ({"a": [1, 1]}, [0, 1, 2]))


class Figures(unittest.TestCase):
    def test_ratios_are_those_of_rounds(self):
        ratios = harness.Ratios([2.0, 4.0, 9.0, 8.0], [1.0, 1.0, 3.0, 2.0])
        self.assertEqual((ratios.spread(), ratios.middle_half(), ratios.median), ("2.00 to 4.00", "3.00 to 4.00", 3.5))
        self.assertEqual(ratios.of_medians, 6.0 / 1.5)
        with self.assertRaises(ValueError):
            harness.Ratios([1.0], [1.0, 2.0])

    def test_values_have_their_units(self):
        self.assertEqual([harness.duration(value) for value in (1.5, 0.02, 3e-6, 4e-8)], ["1.50 s", "20.00 ms", "3.00 µs", "40 ns"])
        self.assertEqual([harness.size(value) for value in (17, 1536, 3 << 30)], ["17 bytes", "1.5 KiB", "3.0 GiB"])
        self.assertEqual(harness.spread([3.0, 1.0, 2.0]), "2 (1 to 3)")
        self.assertEqual(harness.best([(2, 5), (3, 4)]), (2, 4))

    def test_tables_and_json(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            harness.head("a", "b")
            harness.row(1, "x")
        self.assertEqual(out.getvalue(), "| a | b |\n|---|---|\n| 1 | x |\n")
        found = json.loads(harness.as_json("v 1", seconds=[1]))
        self.assertEqual(sorted(found), ["date", "processor", "seconds", "versions"])
        self.assertIn("processors", harness.machine())


class Environment(unittest.TestCase):
    def test_programs_read_only_the_given_configuration(self):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["LOCKSTEP_KERNEL"] = "x"
            try:
                plain, ours = harness.configurations(folder, "module.so", threads=1)
                found = harness.openssl_environment(ours, LOCKSTEP_AHEAD="on")
            finally:
                del os.environ["LOCKSTEP_KERNEL"]
            self.assertEqual((found["OPENSSL_CONF"], found["LOCKSTEP_AHEAD"]), (ours, "on"))
            self.assertNotIn("LOCKSTEP_KERNEL", found)
            with open(plain, encoding="utf-8") as file:
                self.assertEqual(file.read(), "")
            with open(ours, encoding="utf-8") as file:
                self.assertIn("threads = 1\n", file.read())


class Files(unittest.TestCase):
    def test_sizes_are_read(self):
        self.assertEqual([files.bytes_of(text) for text in ("1048576", "2G", "512M")], [1 << 20, 2 << 30, 512 << 20])
        for wrong in ("", "2X", "1K", "-1M", "1.5G"):
            with self.assertRaises(ValueError):
                files.bytes_of(wrong)


if __name__ == "__main__":
    unittest.main()
