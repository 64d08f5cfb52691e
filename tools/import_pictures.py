#!/usr/bin/env python3
"""Draws which crate and which module imports which, as Mermaid diagrams, into docs/architecture.md.

    tools/import_pictures.py            writes the diagrams between the markers of the page
    tools/import_pictures.py --check    fails if the page is not up to date

Both print the groups of modules at the top level of a crate that import each other.

Crates are read from `cargo metadata`, imports of modules from the `use` lines and paths of the sources; tests do not count.
"""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- import pictures: begin -->", "<!-- import pictures: end -->"


def packages():
    """Each crate's folder and the crates of this workspace that it depends on, except in tests."""
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"]
    found = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)["packages"]
    names = {package["name"] for package in found}
    crates = {}
    for package in found:
        uses = {d["name"] for d in package["dependencies"] if d["kind"] is None and d["name"] in names}
        crates[package["name"]] = (pathlib.Path(package["manifest_path"]).parent, uses)
    return crates


def short(name):
    """The name of a crate's folder. The library has the name lockstep-aes on crates.io."""
    return name.removeprefix("lockstep-") if name != "lockstep-aes" else "lockstep"


def reduced(edges):
    """The edges that are not implied by a longer path."""

    def reaches(start, end, without):
        seen, todo = set(), [start]
        while todo:
            node = todo.pop()
            for following in edges.get(node, ()):
                if (node, following) == without or following in seen:
                    continue
                if following == end:
                    return True
                seen.add(following)
                todo.append(following)
        return False

    return {node: {to for to in targets if not reaches(node, to, (node, to))} for node, targets in edges.items()}


def without_tests(text):
    """A source without comments and without what follows `#[cfg(test)]` at its end."""
    text = re.sub(r"//.*", "", text)
    return re.split(r"#\[cfg\(test\)\]\s*(?:pub )?mod tests", text)[0]


def modules(folder):
    """The pairs of top-level modules of a crate of which the first names the second."""
    source = folder / "src"
    files = [path for path in source.rglob("*.rs") if "tests" not in path.relative_to(source).parts]
    top = lambda path: path.relative_to(source).parts[0].removesuffix(".rs")
    names = {top(path) for path in files if path.name != "tests.rs"} - {"lib", "main", "tests"}
    imports = {name: set() for name in names}
    for path in files:
        here = top(path)
        if here not in names:
            continue
        text = without_tests(path.read_text())
        found = set(re.findall(r"\bcrate::(\w+)", text))
        for group in re.findall(r"\bcrate::\{(.*?)\};", text, re.S):
            flat = re.sub(r"\{[^{}]*\}", "", group)
            flat = re.sub(r"\{[^{}]*\}", "", flat)
            found |= {part.strip().split("::")[0] for part in flat.split(",")}
        # A file at the top level can also name its neighbours by `super`.
        if path.parent == source:
            found |= set(re.findall(r"\bsuper::(\w+)", text))
        imports[here] |= (found & names) - {here}
    return imports


def diagram(edges, every=()):
    lines = ["```mermaid", "graph LR"]
    nodes = sorted(set(every) | set(edges) | {to for targets in edges.values() for to in targets})
    lines += [f"    {node.replace('-', '_')}[{node}]" for node in nodes]
    for node in sorted(edges):
        lines += [f"    {node.replace('-', '_')} --> {to.replace('-', '_')}" for to in sorted(edges[node])]
    return "\n".join([*lines, "```"])


def cycles(edges):
    """Groups of modules that import each other, directly or indirectly."""
    reach = {}
    for start in edges:
        seen, todo = set(), [start]
        while todo:
            for following in edges.get(todo.pop(), ()):
                if following not in seen:
                    seen.add(following)
                    todo.append(following)
        reach[start] = seen
    groups = {frozenset(b for b in edges if b == a or (a in reach[b] and b in reach[a])) for a in edges if a in reach[a]}
    return sorted(sorted(group) for group in groups)


def page():
    crates = packages()
    edges = {short(name): {short(to) for to in uses} for name, (_, uses) in crates.items()}
    parts = ["An arrow means \"imports\". Imports that a longer path implies are left out of the first diagram.", diagram(reduced(edges))]
    notes = []
    for name, (folder, _) in sorted(crates.items(), key=lambda item: short(item[0])):
        imports = modules(folder)
        if sum(map(len, imports.values())) == 0:
            continue
        parts.append(f"<details><summary>Modules of <code>{short(name)}</code></summary>\n\n{diagram(imports)}\n\n</details>")
        notes += [f"{short(name)}: {', '.join(group)}" for group in cycles(imports)]
    return "\n\n".join(parts), notes


def main():
    drawn, notes = page()
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    wanted = f"{before}{BEGIN}\n{drawn}\n{END}{after}"
    for note in notes:
        print(f"modules that import each other: {note}")
    if "--check" in sys.argv[1:]:
        if wanted != text:
            sys.exit("docs/architecture.md is not up to date: run tools/import_pictures.py")
    else:
        PAGE.write_text(wanted)


if __name__ == "__main__":
    main()
