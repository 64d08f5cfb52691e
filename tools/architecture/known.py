"""The list of circles and wrong dependencies that exist and are to go: `known.txt`. It may only get shorter.

A line is `circle CRATE: MODULE MODULE...` or `dependency CRATE -> CRATE`; the rest of a line after `#` is a comment.
A line stays as long as it is needed in full: the check fails on a line of which a part is no longer true.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """The circles and the wrong dependencies that the list contains."""

    # The circles, each as the name of a crate and the set of its modules that import each other in a circle.
    circles: frozenset
    # The dependencies, each as the names of two crates of which the first uses the second.
    dependencies: frozenset


def parse(text):
    circles, dependencies = set(), set()
    for number, line in enumerate(text.splitlines(), 1):
        kind, _, rest = line.partition("#")[0].strip().partition(" ")
        if kind == "circle" and ":" in rest:
            crate, _, modules = rest.partition(":")
            circles.add((crate.strip(), frozenset(modules.split())))
        elif kind == "dependency" and "->" in rest:
            crate, _, used = rest.partition("->")
            dependencies.add((crate.strip(), used.strip()))
        elif kind:
            raise ValueError(f"line {number} of the list of known circles is neither a circle nor a dependency: {line}")
    return Known(frozenset(circles), frozenset(dependencies))


def compare(known, circles, wrong):
    """Returns the faults of the workspace that are missing from the list, and the lines of the list that are no longer true.

    `circles` are pairs of a crate and the modules of a circle. `wrong` contains the wrong dependencies with their reasons.
    """
    faults = [
        f"new circle: the modules {', '.join(sorted(modules))} of {crate} import each other"
        for crate, modules in sorted(circles, key=lambda circle: (circle[0], sorted(circle[1])))
        if not any(crate == name and modules <= listed for name, listed in known.circles)
    ]
    faults += [reason for pair, reason in sorted(wrong.items()) if pair not in known.dependencies]
    stale = [_circle(crate, listed) for crate, listed in known.circles if (crate, listed) not in circles]
    stale += [_dependency(pair) for pair in known.dependencies if pair not in wrong]
    return faults, sorted(stale)


def shrunk(text, circles, wrong):
    """Returns the text of the list without the circles and dependencies that no longer exist. Nothing is added to it."""
    lines = []
    for line in text.splitlines():
        entry = parse(line)
        comment = "".join(line.partition("#")[1:])
        for crate, listed in entry.circles:
            # A circle of the list may have been split into several smaller circles.
            left = [modules for name, modules in circles if name == crate and modules <= listed]
            lines += [f"{_circle(crate, modules)}  {comment}".rstrip() for modules in sorted(left, key=sorted)]
        for pair in entry.dependencies:
            lines += [line] if pair in wrong else []
        if not entry.circles and not entry.dependencies:
            lines.append(line)
    return "\n".join([*lines, ""])


def _circle(crate, modules):
    return f"circle {crate}: {' '.join(sorted(modules))}"


def _dependency(pair):
    return f"dependency {pair[0]} -> {pair[1]}"
