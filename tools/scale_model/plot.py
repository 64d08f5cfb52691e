"""The plot of time against work as SVG, both axes logarithmic: lines of the model, circles for measured points."""

import html
import math

import model as m
from figures import Problem

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 840, 84, 22, 34, 520
FIRST, LAST = 6, 15  # powers of ten of the work in bytes
LOWEST, HIGHEST = -5, 6  # powers of ten of the time in seconds
STEPS = 120
# For each line of the plot: the colour on a light background, the colour on a dark background, and the pattern. Each line has a
# different pattern, so the plot is readable without colours.
LINES = (
    ("#2f7d46", "#6fce8c", ""),
    ("#2f7d46", "#6fce8c", "8 3"),
    ("#2f7d46", "#6fce8c", "2 3"),
    ("#1a5fb4", "#7fb2f0", ""),
    ("#b3261e", "#ff8a80", ""),
    ("#b3261e", "#ff8a80", "8 3"),
    ("#b3261e", "#ff8a80", "2 3"),
    ("#a86200", "#f0b050", "2 3"),
    ("#a86200", "#f0b050", "8 3"),
    ("#a86200", "#f0b050", ""),
)
MEASURED = ((False, "measured on 1 and 2 processors"), (True, "the same, busy machine, file to /dev/null"))
MARKS = ((3600, "1 hour"), (86400, "1 day"))


def x_of(work):
    return LEFT + (math.log10(work) - FIRST) / (LAST - FIRST) * (WIDTH - LEFT - RIGHT)


def y_of(seconds):
    return BOTTOM - (math.log10(seconds) - LOWEST) / (HIGHEST - LOWEST) * (BOTTOM - TOP)


def style():
    def colours(index, ground, ink, faint, grid):
        lines = "".join(f".l{i}{{stroke:{one[index]}}}" for i, one in enumerate(LINES))
        return (
            f".ground{{fill:{ground}}}.ink{{fill:{ink}}}.mark{{stroke:{ink}}}.faint{{fill:{faint}}}.grid{{stroke:{grid}}}{lines}"
        )

    light, dark = colours(0, "#fff", "#1b1f24", "#5c6570", "#dcdfe3"), colours(1, "#14181d", "#e3e7ec", "#aab4c0", "#333b45")
    return f"<style>.mark{{fill:none;stroke-width:1.6}}{light}@media(prefers-color-scheme:dark){{{dark}}}</style>"


def size_name(power):
    return f"{10 ** (power % 3)} {('MB', 'GB', 'TB', 'PB')[power // 3 - 2]}"


def time_name(power):
    if power >= 0:
        return f"{10**power:,} s"
    unit = "ms" if power >= -3 else "µs"
    return f"{10 ** (power % 3)} {unit}"


def axes():
    parts = []
    for power in range(FIRST, LAST + 1):
        x = f"{x_of(10.0**power):.1f}"
        parts.append(f'<path class="grid" d="M{x} {TOP}V{BOTTOM}"/>')
        parts.append(f'<text class="ink" x="{x}" y="{BOTTOM + 17}" text-anchor="middle">{size_name(power)}</text>')
    for power in range(LOWEST, HIGHEST + 1):
        y = y_of(10.0**power)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text class="ink" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{time_name(power)}</text>')
    for seconds, name in MARKS:
        y = y_of(seconds)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke-dasharray="4 4"/>')
        parts.append(f'<text class="faint" x="{LEFT + 6}" y="{y - 4:.1f}">{name}</text>')
    return parts


def path(configuration, first, last):
    """The line of a configuration between two amounts of work, which are given as powers of ten."""
    points = []
    for step in range(STEPS + 1):
        work = 10 ** (first + (last - first) * step / STEPS)
        seconds = min(max(m.seconds(configuration, work), 10.0**LOWEST), 10.0**HIGHEST)
        points.append(f"{x_of(work):.1f} {y_of(seconds):.1f}")
    return "M" + "L".join(points)


def line(index, configuration):
    pattern = f' stroke-dasharray="{LINES[index][2]}"' if LINES[index][2] else ""
    end = min(LAST, max(FIRST, math.log10(configuration.capacity)))
    parts = [f'<path class="l{index}" d="{path(configuration, FIRST, end)}" fill="none" stroke-width="1.8"{pattern}/>']
    if end < LAST:
        parts.append(
            f'<path class="l{index}" d="{path(configuration, end, LAST)}" fill="none" stroke-width="0.8"{pattern} opacity="0.7"/>'
        )
    return parts


def mark(x, y, disturbed):
    """A measured point. It is a circle, or a cross if the machine was busy."""
    if disturbed:
        return f'<path class="mark" d="M{x - 3.5:.1f} {y - 3.5:.1f}l7 7m0 -7l-7 7"/>'
    return f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'


def place(row):
    """The position of an entry of the key."""
    return LEFT + row % 2 * 375, BOTTOM + 46 + row // 2 * 19


def key(index, configuration):
    x, y = place(index)
    pattern = f' stroke-dasharray="{LINES[index][2]}"' if LINES[index][2] else ""
    return [
        f'<path class="l{index}" d="M{x} {y}h30" fill="none" stroke-width="1.8"{pattern}/>',
        f'<text class="ink" x="{x + 37}" y="{y + 4}">{html.escape(configuration.title)}</text>',
    ]


def svg(model):
    plotted = [one for one in model.configurations if one.show == "all"]
    if len(plotted) > len(LINES):
        raise Problem(
            f"the plot has colours for {len(LINES)} lines, not for {len(plotted)}: give some configurations 'show': 'table'"
        )
    rows = (len(plotted) + len(MEASURED) + 1) // 2
    height = BOTTOM + 46 + 19 * rows
    title = "Time against work: lines are the model, circles and crosses are measured"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
        ' font-family="sans-serif" font-size="12" role="img">',
        f"<title>{title}</title>",
        style(),
        '<rect class="ground" width="100%" height="100%"/>',
        f'<text class="ink" x="16" y="20" font-size="14" font-weight="bold">{title}</text>',
        *axes(),
    ]
    for index, one in enumerate(plotted):
        parts += line(index, one)
        parts += key(index, one)
    parts += [mark(x_of(point.work), y_of(point.seconds), point.disturbed) for point in model.points]
    for index, (disturbed, name) in enumerate(MEASURED):
        x, y = place(len(plotted) + index)
        parts += [mark(x + 15, y, disturbed), f'<text class="ink" x="{x + 37}" y="{y + 4}">{name}</text>']
    return "\n".join([*parts, "</svg>", ""])
