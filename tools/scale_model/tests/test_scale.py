"""Tests of the model's arithmetic, the reading of figures, the tables and the plot. `tools/scale_model.py --self-test` runs them."""

import copy
import json
import math
import os
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import figures
import model as m
import page
import plot

FIGURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "docs", "scale", "figures.json")


def figure(value, unit):
    return {"what": "a figure", "value": value, "unit": unit, "kind": "assumption", "source": "this test"}


def small():
    """A small file of figures, with one machine and a cluster of four machines with an object store."""
    return {
        "figures": {
            "kernel": figure(10, "GB/s"),
            "copy": figure(40, "GB/s"),
            "memory": figure(24, "GB/s"),
            "wire": figure(16, "Gb/s"),
            "start": figure(5, "ms"),
            "two": figure(2, "count"),
            "four": figure(4, "count"),
            "gets": figure(1000, "1/s"),
            "puts": figure(500, "1/s"),
            "part": figure(8, "MiB"),
            "hour": figure(36, "$/h"),
            "get": figure(0.001, "$/1000 requests"),
            "put": figure(0.009, "$/1000 requests"),
        },
        "object_store": {"get_rate": "gets", "put_rate": "puts", "get_price": "get", "put_price": "put", "part": "part"},
        "configurations": [
            {
                "name": "one",
                "title": "one machine",
                "start": ["start"],
                "price": {"figure": "hour", "parts": 2},
                "stages": [
                    {"name": "core", "rate": ["kernel", "copy"], "times": ["two"]},
                    {"name": "memory", "rate": ["memory"], "moved": "two"},
                ],
            },
            {
                "name": "many",
                "title": "four machines",
                "start": ["start"],
                "nodes": "four",
                "object_store": True,
                "price": {"figure": "hour", "parts": 1},
                "stages": [
                    {"name": "network", "rate": ["wire"]},
                    {"name": "store", "requests": "puts", "part": "part", "shared": True},
                ],
            },
        ],
        "points": [
            {"configuration": "one", "unit": "s", "source": "this test", "points": [[1000, 0.1]]},
            {"configuration": "one", "unit": "GB/s", "source": "this test", "points": [[1000, 4]]},
        ],
    }


class Arithmetic(unittest.TestCase):
    def setUp(self):
        self.model = figures.parse(small())
        self.one, self.many = self.model.configurations

    def test_times_of_one_resource_add_up_and_resources_overlap(self):
        # A core processes 1 / (1 / 10 + 1 / 40) = 8 GB/s, and there are two cores. The memory moves two bytes for
        # each byte of data, so its 24 GB/s allow 12 GB/s.
        self.assertAlmostEqual(self.one.stages[0].rate / 16e9, 1)
        self.assertAlmostEqual(m.rate(self.one) / 12e9, 1)
        self.assertEqual(m.slowest(self.one).name, "memory")

    def test_time_is_start_and_work_by_rate(self):
        self.assertAlmostEqual(m.seconds(self.one, 12e9), 1.005)
        self.assertAlmostEqual(m.half_size(self.one) / 60e6, 1)
        self.assertEqual(m.bottleneck(self.one, 59e6), m.START)
        self.assertEqual(m.bottleneck(self.one, 61e6), "memory")

    def test_shared_stages_do_not_grow_with_the_nodes(self):
        # A node processes 2 GB/s. The store accepts 500 parts of 8 MiB per second.
        self.assertAlmostEqual(m.nodes_until_shared(self.many), 500 * 8 * (1 << 20) / 2e9)
        self.assertAlmostEqual(m.rate(self.many) / (500 * 8 * (1 << 20)), 1)
        self.assertEqual(m.slowest(self.many).name, "store")
        self.assertIsNone(m.nodes_until_shared(self.one))

    def test_dollars(self):
        self.assertAlmostEqual(m.dollars(self.one, 12e9)[0], 18 / 3600 * 1.005)
        machines, requests = m.dollars(self.many, 8 * (1 << 20) * 1e6, self.model.object_store)
        self.assertAlmostEqual(machines, 4 * 36 / 3600 * (0.005 + 2000))
        self.assertAlmostEqual(requests, 1e6 * 0.010 / 1000)

    def test_error_is_the_difference_by_the_measured_time(self):
        point = self.model.points[0]
        self.assertAlmostEqual(m.error(point), (0.005 + 1000 * (1 << 20) / 12e9) / 0.1 - 1)

    def test_points_may_be_rates(self):
        self.assertAlmostEqual(self.model.points[1].seconds, 1000 * (1 << 20) / 4e9)

    def test_units_to_match(self):
        self.assertEqual([m.units_to_match(10, one) for one in (10, 5, 4, 11)], [1, 2, 3, 1])


class BadInput(unittest.TestCase):
    def rejects(self, change, message):
        given = small()
        change(given)
        with self.assertRaisesRegex(figures.Problem, re.escape(message)):
            figures.parse(given)

    def test_the_unchanged_file_is_accepted(self):
        figures.parse(small())

    def test_missing_field(self):
        self.rejects(lambda it: it["figures"]["kernel"].pop("unit"), "figure 'kernel': the field 'unit' is missing")
        self.rejects(lambda it: it["figures"]["kernel"].pop("source"), "figure 'kernel': the field 'source' is missing")
        self.rejects(lambda it: it.pop("points"), "the field 'points' is missing")
        self.rejects(
            lambda it: it["configurations"][1]["stages"][1].pop("part"),
            "configuration 'many', stage 2: the field 'part' is missing",
        )

    def test_unknown_field_unit_and_kind(self):
        self.rejects(lambda it: it["figures"]["kernel"].update(price=1), "figure 'kernel': unknown field 'price'")
        self.rejects(
            lambda it: it["figures"]["kernel"].update(unit="MB/min"), "figure 'kernel': unknown unit 'MB/min'; known are GB/s"
        )
        self.rejects(lambda it: it["figures"]["kernel"].update(kind="guess"), "figure 'kernel': unknown kind 'guess'")
        self.rejects(
            lambda it: it["configurations"][0].update(show="never"),
            "configuration 'one': 'show' must be one of all, table, hidden",
        )
        self.rejects(
            lambda it: it["configurations"][1]["stages"][1].update(shared=1),
            "configuration 'many', stage 2: 'shared' must be true or false",
        )

    def test_values_that_are_no_positive_numbers(self):
        for value, message in (
            (-1, "must be positive, not -1"),
            (0, "must be positive"),
            ("10", "must be a number"),
            (True, "must be a number"),
            (math.inf, "must be a number"),
            (None, "must be a number, not null"),
        ):
            self.rejects(lambda it: it["figures"]["kernel"].update(value=value), f"figure 'kernel': 'value' {message}")
        self.rejects(lambda it: it["points"][0].update(points=[[1, -1]]), "points 1: s must be positive")
        self.rejects(lambda it: it["points"][0].update(unit="ms"), 'points 1: the unit of points is s or GB/s, not "ms"')

    def test_names_that_do_not_exist_and_units_that_do_not_fit(self):
        self.rejects(
            lambda it: it["configurations"][0].update(start=["begin"]), "configuration 'one': there is no figure \"begin\""
        )
        self.rejects(
            lambda it: it["configurations"][0].update(start=["kernel"]), "figure 'kernel' has the unit GB/s; a time is required"
        )
        self.rejects(lambda it: it["points"][0].update(configuration="none"), 'points 1: there is no configuration "none"')
        self.rejects(
            lambda it: it["configurations"].append(it["configurations"][0]), "configuration 'one' appears more than once"
        )

    def test_a_file_that_is_not_json_is_named(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write("{")
            file.flush()
            with self.assertRaisesRegex(figures.Problem, f"{re.escape(file.name)} is not JSON"):
                figures.load(file.name)


class Pages(unittest.TestCase):
    def setUp(self):
        self.model = figures.load(FIGURES)

    def given(self):
        with open(FIGURES, encoding="utf-8") as file:
            return json.load(file)

    def test_numbers_of_tables(self):
        self.assertEqual(
            [page.digits(one) for one in (12.345, 0.012345, 1234567, 99.96, 3, 120)],
            ["12.3", "0.0123", "1,230,000", "100", "3", "120"],
        )
        self.assertEqual(
            [page.time_text(one) for one in (2e-7, 2e-5, 0.02, 20, 600, 18000, 1e6)],
            ["200 ns", "20 µs", "20 ms", "20 s", "10 min", "5 h", "11.6 days"],
        )
        self.assertEqual(
            [page.size_text(one) for one in (10, 2500, 7e9, 4e14, 2e15)], ["10 B", "2.5 kB", "7 GB", "400 TB", "2 PB"]
        )

    def test_every_figure_is_used(self):
        given = self.given()
        with open(page.__file__, encoding="utf-8") as file:
            text = json.dumps([given["configurations"], given["object_store"]]) + file.read()
        unused = [name for name in self.model.figures if f'"{name}"' not in text]
        self.assertEqual(unused, [])

    def test_the_plot_is_xml_and_has_each_point_and_line_once(self):
        root = xml.etree.ElementTree.fromstring(plot.svg(self.model))
        marks = [one for one in root.iter() if one.get("class") == "mark"]
        circles = [one for one in marks if one.tag.endswith("circle")]
        self.assertEqual(len(marks), len(self.model.points) + len(plot.MEASURED))  # and those of the key
        self.assertEqual(len(circles), sum(not point.disturbed for point in self.model.points) + 1)
        self.assertLessEqual(sum(one.show == "all" for one in self.model.configurations), len(plot.LINES))
        for one in circles[:-1]:
            self.assertTrue(0 < float(one.get("cx")) < plot.WIDTH and plot.TOP < float(one.get("cy")) < plot.BOTTOM)

    def test_a_changed_price_changes_the_table(self):
        given = self.given()
        changed = copy.deepcopy(given)
        changed["figures"]["price_gpu"]["value"] *= 2
        self.assertNotEqual(page.money(figures.parse(given)), page.money(figures.parse(changed)))

    def test_markers(self):
        text = "a\n<!-- x: begin -->\nold\n<!-- x: end -->\nb\n"
        self.assertEqual(page.replaced(text, {"x": "new"}, "p"), text.replace("old", "new"))
        for broken in ("nothing", text + text, text.replace("begin", "end", 1)):
            with self.assertRaisesRegex(figures.Problem, "markers"):
                page.replaced(broken, {"x": "new"}, "p")


if __name__ == "__main__":
    unittest.main()
