"""The tables and sentences of docs/scale.md, and the list of figures in docs/scale/figures.md."""

import math
import textwrap

import model as m
from figures import MIB, Problem

SIZES = ((MIB, "1 MiB"), (1e9, "1 GB"), (1e12, "1 TB"), (1e15, "1 PB"))
CORES = (1, 4, 8, 16, 32, 96)
PARTS = ((64 << 10, "64 KiB"), (MIB, "1 MiB"), (8 * MIB, "8 MiB"), (64 * MIB, "64 MiB"))
PREFIXES = (1, 10, 100)


def digits(value, count=3):
    """A number with `count` significant digits and no exponent."""
    if value == 0:
        return "0"
    places = max(0, count - 1 - math.floor(math.log10(abs(value))))
    shown = f"{round(value, count - 1 - math.floor(math.log10(abs(value)))):,.{places}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def rate_text(rate):
    return digits(rate / 1e9)


def time_text(seconds):
    for limit, factor, unit in (
        (1e-6, 1e-9, "ns"),
        (1e-3, 1e-6, "µs"),
        (1, 1e-3, "ms"),
        (120, 1, "s"),
        (7200, 60, "min"),
        (172800, 3600, "h"),
    ):
        if seconds < limit:
            return f"{digits(seconds / factor)} {unit}"
    return f"{digits(seconds / 86400)} days"


def size_text(size):
    for limit, unit in ((1e3, "B"), (1e6, "kB"), (1e9, "MB"), (1e12, "GB"), (1e15, "TB")):
        if size < limit:
            return f"{digits(size / (limit / 1e3))} {unit}"
    return f"{digits(size / 1e15)} PB"


def table(head, rows):
    """Makes a Markdown table. A column whose title in `head` begins with `>` is aligned to the right."""
    lines = ["| " + " | ".join(one.removeprefix(">") for one in head) + " |"]
    lines.append("|" + "|".join("--:" if one.startswith(">") else "---" for one in head) + "|")
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def shown(model):
    return [one for one in model.configurations if one.show != "hidden"]


def times(model):
    rows = []
    for one in shown(model):
        cells = []
        for size, _ in SIZES:
            mark = " *" if size > one.capacity else ""
            cells.append(f"{time_text(m.seconds(one, size))}{mark} ({m.bottleneck(one, size)})")
        rows.append([one.title, rate_text(m.rate(one)), *cells])
    return table(["configuration", ">GB/s", *(f">{name}" for _, name in SIZES)], rows)


def money(model):
    rows = []
    for one in shown(model):
        if one.price is None:
            continue
        machines, requests = m.dollars(one, 1e15, model.object_store)
        hourly = one.price * 3600
        whole = machines + requests
        prices = [f"${digits(hourly)}", f"${digits(machines)}", f"${digits(requests)}" if requests else "-"]
        rows.append([one.title, size_text(m.rate(one) * 3600), *prices, size_text(1e15 / whole)])
    return table(["configuration", ">in an hour", ">an hour costs", ">1 PB: machines", ">requests", ">for a dollar"], rows)


def socket(model):
    """A table that shows how the rate of one socket grows with the number of working cores."""
    core, moved = model.value("gcm_core"), model.value("moved_in_place")
    memory, each = model.value("memory_socket") / moved, model.value("memory_core") / moved
    rows = []
    for cores in CORES:
        limits = (("AES kernel", cores * core), ("memory, by the core", cores * each), ("memory", memory))
        name, rate = min(limits, key=lambda limit: limit[1])
        rows.append([str(cores), rate_text(rate), name, f"{100 * rate / (cores * core):.0f} %"])
    return table([">cores", ">GB/s", "bottleneck", ">of the cores' AES rate"], rows)


def store(model):
    """A table of the number of nodes from which on the object store limits the rate, by the size of parts and the
    number of prefixes."""
    node = m.rate(model.configuration("node-200"))
    slower = min(model.object_store["get_rate"], model.object_store["put_rate"])
    rows = []
    for part, name in PARTS:
        cells = [digits(slower * part * prefixes / node, 2) for prefixes in PREFIXES]
        requests = 1e15 / part * (model.object_store["get_price"] + model.object_store["put_price"])
        rows.append([name, rate_text(slower * part), *cells, f"${digits(requests)}"])
    nodes = [f">nodes, {count} prefix{'es' if count > 1 else ''}" for count in PREFIXES]
    return table([">part", ">GB/s by prefix", *nodes, ">requests for 1 PB"], rows)


def gpu(model):
    """Makes a table of the number of cores that are as fast as a GPU, by the path of the data to the GPU."""
    rows = []
    for name in ("gpu-memory", "gpu-nvlink", "gpu-c2c", "gpu-pcie"):
        one = model.configuration(name)
        rate = m.rate(one)
        cells = [str(m.units_to_match(rate, model.value(core))) for core in ("gcm_core", "soft_core")]
        rows.append([one.title, rate_text(rate), m.slowest(one).name, *cells])
    return table(["configuration", ">GB/s", "bottleneck", ">cores with AES instructions", ">without"], rows)


def check(model):
    rows = []
    for point in model.points:
        predicted = m.seconds(point.configuration, point.work)
        title = point.configuration.title + (", busy machine" if point.disturbed else "")
        limit = m.bottleneck(point.configuration, point.work)
        numbers = [
            f"{point.work / MIB:,g} MiB",
            time_text(point.seconds),
            time_text(predicted),
            limit,
            f"{100 * m.error(point):+.0f} %",
        ]
        rows.append([title, *numbers, point.source.replace("(../", "(")])
    if not rows:
        raise Problem("there are no measured points")
    return table(["configuration", ">work", ">measured", ">model", "limit", ">error", "source"], rows)


def spread(model):
    """A sentence about the errors of the model."""
    quiet = [point for point in model.points if not point.disturbed]
    errors = sorted(abs(m.error(point)) for point in quiet)
    worst = max(quiet, key=lambda point: abs(m.error(point)))
    return (
        f"The median error of the {len(errors)} points that are not marked as busy is {100 * errors[len(errors) // 2]:.0f} %;"
        f" the largest is {100 * m.error(worst):+.0f} % ({worst.configuration.title}, {worst.work / MIB:,g} MiB)."
    )


def findings(model):
    """Sentences about the amounts at which the bottleneck changes."""
    value = model.value
    core, memory = value("gcm_core"), value("memory_socket") / value("moved_in_place")
    by_core = min(core, value("memory_core") / value("moved_in_place"))
    pcie, node, cluster = model.configuration("gpu-pcie"), model.configuration("node-200"), model.configuration("cluster")
    small = model.configuration("node-50")
    gpu_rate, part = rate_text(m.rate(model.configuration("gpu-memory"))), digits(model.object_store["part"] / MIB)
    halves = [size_text(m.half_size(one)) for one in (model.configuration("core"), model.configuration("vm-file"), pcie, cluster)]
    lines = (
        f"**One core** is limited by the AES kernel: {rate_text(core)} GB/s of GCM-256.",
        f"**A socket** of {value('cores_socket'):.0f} cores is limited by memory if {m.units_to_match(memory, by_core)} cores or more encrypt:"
        f" {rate_text(memory)} GB/s.",
        f"**A GPU** is limited by the kernel if the data are in its memory. The computed bound of the kernel is {gpu_rate} GB/s. If the"
        f" data are transferred over PCIe, the GPU is limited by the link: {rate_text(m.rate(pcie))} GB/s, the rate of"
        f" {m.units_to_match(m.rate(pcie), core)} cores.",
        f"**A node** is limited by the network: {rate_text(m.rate(small))} GB/s at 50 Gb/s, {rate_text(m.rate(node))} GB/s at 200 Gb/s."
        f" With TLS in both directions, {m.units_to_match(m.rate(node), core / 3)} Zen 4 cores keep up with 200 Gb/s.",
        f"**A cluster** is limited by the object store from {digits(m.nodes_until_shared(cluster), 2)} nodes of 200 Gb/s on ({part} MiB"
        f" parts, {value('prefixes'):.0f} prefixes). Up to that number, more nodes shorten the time and cost the same.",
        f"**Fixed costs** take at least half of the time if the amount of data is at most {halves[0]} in a call on one core,"
        f" {halves[1]} in a command, {halves[2]} in a call on a GPU over PCIe, or {halves[3]} on {cluster.nodes} nodes that are started"
        " for the work.",
    )
    return "\n".join(textwrap.fill(f"- {line}", 130, subsequent_indent="  ", break_on_hyphens=False) for line in lines)


def parts(model):
    """The generated parts of docs/scale.md by the names of their markers."""
    return {
        "findings": findings(model),
        "times": times(model),
        "money": money(model),
        "socket": socket(model),
        "store": store(model),
        "gpu": gpu(model),
        "check": f"{check(model)}\n\n{spread(model)}",
    }


def sources(model):
    """The generated parts of docs/scale/figures.md."""
    rows = []
    for one in model.figures.values():
        rows.append([f"`{one.name}`", one.what, f"{one.value:,.15g} {one.unit}".removesuffix(" count"), one.kind, one.source])
    stages = []
    for one in model.configurations:
        rates = "; ".join(f"{stage.name} {rate_text(m.rate_of(one, stage))}" for stage in one.stages)
        stages.append([one.title, time_text(one.start), rates])
    return {
        "figures": table(["name", "figure", ">value", "kind", "source"], rows),
        "stages": table(["configuration", ">start", "GB/s of each stage"], stages),
    }


def replaced(text, generated, path):
    """Returns the page with each generated part replaced by its new text. A part is from `<!-- NAME: begin -->` to `<!-- NAME: end
    -->`."""
    for name, part in generated.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
            raise Problem(f"{path} must have the markers {begin} and {end} once, in this order")
        before, rest = text.split(begin)
        text = f"{before}{begin}\n{part}\n{end}{rest.split(end)[1]}"
    return text
