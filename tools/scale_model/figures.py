"""Reads and checks the file of figures: rates, times and prices with their sources, configurations, measured points.

All values are converted to bytes, seconds and dollars.
"""

import json
import math
from dataclasses import dataclass

MIB = 1 << 20
# For each unit, the quantity that it measures, and the factor by which a value is converted to bytes, seconds or dollars.
UNITS = {
    "GB/s": ("rate", 1e9),
    "Gb/s": ("rate", 1e9 / 8),
    "s": ("time", 1.0),
    "ms": ("time", 1e-3),
    "us": ("time", 1e-6),
    "ns": ("time", 1e-9),
    "GB": ("size", 1e9),
    "GiB": ("size", 1 << 30),
    "MiB": ("size", MIB),
    "1/s": ("requests", 1.0),
    "count": ("count", 1.0),
    "$/h": ("price", 1.0 / 3600),
    "$/1000 requests": ("request price", 1e-3),
}
SHOWN = ("all", "table", "hidden")
KINDS = ("measured", "published", "bound", "assumption")


class Problem(Exception):
    """An error in the file of figures. The message states the error and its place."""


@dataclass(frozen=True)
class Figure:
    name: str
    what: str
    value: float
    unit: str
    kind: str
    source: str

    @property
    def base(self):
        """A value converted to bytes, seconds or dollars."""
        return self.value * UNITS[self.unit][1]


@dataclass(frozen=True)
class Stage:
    """A resource that every byte uses. The times of the figures in `rate` are added, because one processor does all this work in
    sequence."""

    name: str
    rate: float
    shared: bool


@dataclass(frozen=True)
class Configuration:
    name: str
    title: str
    start: float
    stages: tuple
    nodes: int
    # The price of all nodes in dollars per second; None if no price is given.
    price: float
    capacity: float
    object_store: bool
    # Where the page shows the configuration. "all": in tables and plot. "table": in tables only. "hidden": only in tables that do
    # not list all configurations.
    show: str


@dataclass(frozen=True)
class Point:
    configuration: Configuration
    work: float
    seconds: float
    source: str
    # True if other programs ran during the measurement.
    disturbed: bool


@dataclass(frozen=True)
class Model:
    figures: dict
    configurations: tuple
    points: tuple
    object_store: dict

    def value(self, name):
        if name not in self.figures:
            raise Problem(f"the tables require a figure {name!r}")
        return self.figures[name].base

    def configuration(self, name):
        for one in self.configurations:
            if one.name == name:
                return one
        raise Problem(f"the tables require a configuration {name!r}")


def fields(where, given, required, optional=()):
    """Checks that an object has the required fields and no unknown ones."""
    if not isinstance(given, dict):
        raise Problem(f"{where} must be an object")
    for name in required:
        if name not in given:
            raise Problem(f"{where}: the field {name!r} is missing")
    for name in given:
        if name not in required and name not in optional:
            raise Problem(f"{where}: unknown field {name!r}; known are {', '.join((*required, *optional))}")


def number(where, value):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise Problem(f"{where} must be a number, not {json.dumps(value)}")
    if value <= 0:
        raise Problem(f"{where} must be positive, not {value}")
    return float(value)


def text(where, value):
    if not isinstance(value, str) or not value.strip():
        raise Problem(f"{where} must be a text that is not empty")
    return value


def flag(where, given, name, default):
    if not isinstance(given.get(name, default), bool):
        raise Problem(f"{where}: {name!r} must be true or false")
    return given.get(name, default)


def read_figures(given):
    if not isinstance(given, dict) or not given:
        raise Problem("'figures' must be an object that is not empty")
    found = {}
    for name, one in given.items():
        where = f"figure {name!r}"
        fields(where, one, ("what", "value", "unit", "kind", "source"))
        if one["unit"] not in UNITS:
            raise Problem(f"{where}: unknown unit {one['unit']!r}; known are {', '.join(UNITS)}")
        if one["kind"] not in KINDS:
            raise Problem(f"{where}: unknown kind {one['kind']!r}; known are {', '.join(KINDS)}")
        value = number(f"{where}: 'value'", one["value"])
        what, source = text(f"{where}: 'what'", one["what"]), text(f"{where}: 'source'", one["source"])
        found[name] = Figure(name, what, value, one["unit"], one["kind"], source)
    return found


class Reader:
    """Reads configurations, whose stages refer to figures by name."""

    def __init__(self, found):
        self.figures = found
        self.used = set()

    def figure(self, where, name, dimension):
        """Returns the base value of a figure, which must have a certain dimension."""
        if not isinstance(name, str) or name not in self.figures:
            raise Problem(f"{where}: there is no figure {json.dumps(name)}")
        one = self.figures[name]
        if UNITS[one.unit][0] != dimension:
            raise Problem(f"{where}: figure {name!r} has the unit {one.unit}; a {dimension} is required")
        self.used.add(name)
        return one.base

    def names(self, where, given):
        if not isinstance(given, list) or not given:
            raise Problem(f"{where} must be a list of names of figures that is not empty")
        return given

    def stage(self, where, given):
        fields(where, given, ("name",), ("rate", "requests", "part", "times", "moved", "shared"))
        if ("rate" in given) == ("requests" in given):
            raise Problem(f"{where}: either 'rate' or 'requests' with 'part' is required")
        if "rate" in given:
            names = self.names(f"{where}: 'rate'", given["rate"])
            rate = 1 / sum(1 / self.figure(where, name, "rate") for name in names)
        else:
            if "part" not in given:
                raise Problem(f"{where}: the field 'part' is missing")
            rate = self.figure(where, given["requests"], "requests") * self.figure(where, given["part"], "size")
        for name in given.get("times", []):
            rate *= self.figure(where, name, "count")
        if "moved" in given:
            rate /= self.figure(where, given["moved"], "count")
        return Stage(text(f"{where}: 'name'", given["name"]), rate, flag(where, given, "shared", False))

    def configuration(self, given):
        name = given.get("name") if isinstance(given, dict) else None
        where = f"configuration {name!r}"
        fields(where, given, ("name", "title", "start", "stages"), ("nodes", "price", "capacity", "object_store", "show"))
        start = sum(self.figure(where, one, "time") for one in self.names(f"{where}: 'start'", given["start"]))
        if not isinstance(given["stages"], list) or not given["stages"]:
            raise Problem(f"{where}: 'stages' must be a list that is not empty")
        stages = tuple(self.stage(f"{where}, stage {i + 1}", one) for i, one in enumerate(given["stages"]))
        nodes = int(self.figure(where, given["nodes"], "count")) if "nodes" in given else 1
        price = None
        if "price" in given:
            fields(f"{where}: 'price'", given["price"], ("figure", "parts"))
            parts = number(f"{where}: 'price', 'parts'", given["price"]["parts"])
            price = self.figure(where, given["price"]["figure"], "price") / parts * nodes
        capacity = self.figure(where, given["capacity"], "size") if "capacity" in given else math.inf
        shown = given.get("show", "all")
        if shown not in SHOWN:
            raise Problem(f"{where}: 'show' must be one of {', '.join(SHOWN)}, not {json.dumps(shown)}")
        return Configuration(
            name=text(f"{where}: 'name'", name),
            title=text(f"{where}: 'title'", given["title"]).replace("{nodes}", str(nodes)),
            start=start,
            stages=stages,
            nodes=nodes,
            price=price,
            capacity=capacity,
            object_store=flag(where, given, "object_store", False),
            show=shown,
        )


def read_points(given, configurations):
    found = []
    by_name = {one.name: one for one in configurations}
    for i, group in enumerate(given):
        where = f"points {i + 1}"
        fields(where, group, ("configuration", "unit", "source", "points"), ("disturbed",))
        if group["unit"] not in ("s", "GB/s"):
            raise Problem(f"{where}: the unit of points is s or GB/s, not {json.dumps(group['unit'])}")
        if group["configuration"] not in by_name:
            raise Problem(f"{where}: there is no configuration {json.dumps(group['configuration'])}")
        for pair in group["points"]:
            if not isinstance(pair, list) or len(pair) != 2:
                raise Problem(f"{where}: a point is a list of MiB and {group['unit']}, not {json.dumps(pair)}")
            work, measured = number(f"{where}: MiB", pair[0]) * MIB, number(f"{where}: {group['unit']}", pair[1])
            seconds = measured if group["unit"] == "s" else work / (measured * UNITS["GB/s"][1])
            source, disturbed = text(f"{where}: 'source'", group["source"]), flag(where, group, "disturbed", False)
            found.append(Point(by_name[group["configuration"]], work, seconds, source, disturbed))
    return tuple(found)


def parse(given):
    """The model that a decoded JSON file describes."""
    fields("the file", given, ("figures", "configurations", "points", "object_store"))
    found = read_figures(given["figures"])
    reader = Reader(found)
    if not isinstance(given["configurations"], list) or not isinstance(given["points"], list):
        raise Problem("'configurations' and 'points' must be lists")
    configurations = tuple(reader.configuration(one) for one in given["configurations"])
    names = [one.name for one in configurations]
    for name in names:
        if names.count(name) > 1:
            raise Problem(f"configuration {name!r} appears more than once")
    wanted = {
        "get_rate": "requests",
        "put_rate": "requests",
        "get_price": "request price",
        "put_price": "request price",
        "part": "size",
    }
    fields("'object_store'", given["object_store"], tuple(wanted))
    store = {key: reader.figure("'object_store'", given["object_store"][key], dimension) for key, dimension in wanted.items()}
    return Model(found, configurations, read_points(given["points"], configurations), store)


def load(path):
    try:
        with open(path, encoding="utf-8") as file:
            given = json.load(file)
    except ValueError as error:
        raise Problem(f"{path} is not JSON: {error}") from None
    try:
        return parse(given)
    except Problem as problem:
        raise Problem(f"{path}: {problem}") from None
