"""Which top-level module of a crate imports which, and the circles among them."""

import re

# Literals and comments are removed, because text in them could look like a path, and braces in them like blocks.
_IGNORED = re.compile(
    r"""//[^\n]*
      | /\*.*?\*/
      | b?r(?P<hashes>\#*)".*?"(?P=hashes)
      | b?"(?:\\.|[^"\\])*"
      | b?'(?:\\(?:x[0-9a-fA-F]{2}|u\{[0-9a-fA-F]+\}|.)|[^'\\\n])'""",
    re.S | re.X,
)
_TEST = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*")


def code(text):
    """Returns a source without its comments, its literals and its items for tests."""
    text = _IGNORED.sub(lambda found: "" if found[0].startswith("/") else '""', text)
    kept, position = [], 0
    for start in _TEST.finditer(text):
        if start.start() >= position:
            kept.append(text[position : start.start()])
            position = _end_of_item(text, start.end())
    return "".join([*kept, text[position:]])


def _end_of_item(text, position):
    """Returns the position after the item that begins here: after its semicolon, or after its block."""
    depth = 0
    for at in range(position, len(text)):
        if text[at] == ";" and depth == 0:
            return at + 1
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if text[at] == "}" and depth <= 0:
            return at + 1
    return len(text)


def paths(tree):
    """The paths of a `use` tree such as `a::{b, c::{d, e}} as f`, as lists of names."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    names = [name.strip() for name in head.split("::") if name.strip()]
    if not brace:
        # In `a as b`, only `a` is a part of the path.
        return [[name.split()[0] for name in names]] if names else []
    parts, depth, begin = [], 0, 0
    inside = rest.rpartition("}")[0]
    for at, letter in enumerate(inside):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append(inside[begin:at])
            begin = at + 1
    return [names + path for part in [*parts, inside[begin:]] for path in paths(part)]


def _absolute(path, module):
    """The path from the root of the crate, or None for a path into another crate. `module` is the module in which
    `self` and `super` occur."""
    if path[0] == "crate":
        return path[1:]
    if path[0] not in ("self", "super"):
        return None
    here = list(module)
    for index, name in enumerate(path):
        if name == "super":
            here = here[:-1]
        elif name != "self":
            return here + path[index:]
    return here


def named(text, module):
    """The absolute paths that a source without comments and tests names. `module` is its own path in the crate."""
    trees = re.findall(r"\buse\s+([^;]*);", text)
    found = [path for tree in trees for path in paths(tree)]
    # Paths in expressions. The search also finds a part of each `use`, namely the path before its braces, which does no harm.
    found += [match.split("::") for match in re.findall(r"\b(?:crate|super|self)(?:::\w+)+", text)]
    return [path for path in (_absolute(path, module) for path in found if path) if path]


def _sources(folder):
    """The source texts of a crate by the path of the module."""
    source = folder / "src"
    found = {}
    for path in sorted(source.rglob("*.rs")):
        parts = path.relative_to(source).with_suffix("").parts
        if "tests" in parts or parts == ("main",) and (source / "lib.rs").exists() or parts[0] == "bin":
            continue
        parts = parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts
        found[parts] = code(path.read_text(encoding="utf-8"))
    return found


def imports(folder):
    """The names of the top-level modules of the crate in this folder, each with the names of the modules that it imports.

    A name that `lib.rs` re-exports from a module counts as a name in this module. Tests do not count.
    """
    sources = _sources(folder)
    root = sources.get((), "")
    names = {module[0] for module in sources if module}
    # The text does not contain the declarations of modules for tests, so these modules are left out.
    names &= set(re.findall(r"\bmod\s+(\w+)", root)) | {module[0] for module in sources if len(module) > 1}
    exported = {}
    for tree in re.findall(r"\buse\s+([^;]*);", root):
        for path in paths(tree):
            path = path[1:] if path[0] in ("crate", "self") else path
            if len(path) > 1 and path[0] in names:
                exported[path[-1]] = path[0]
    edges = {name: set() for name in names}
    for module, text in sources.items():
        if not module or module[0] not in names:
            continue
        used = {path[0] if path[0] in names else exported.get(path[0]) for path in named(text, module)}
        edges[module[0]] |= (used & names) - {module[0]}
    return edges


def circles(edges):
    """The circles of a graph, which are the largest sets of nodes in which each node reaches every other one."""
    reach = {}
    for start in edges:
        seen, todo = set(), [start]
        while todo:
            for following in edges.get(todo.pop(), ()):
                if following not in seen:
                    seen.add(following)
                    todo.append(following)
        reach[start] = seen
    return {frozenset(b for b in reach[a] if a in reach[b]) for a in edges if a in reach[a]}
