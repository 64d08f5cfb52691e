"""The picture of the crates by layers, as a Mermaid diagram between two markers of docs/architecture.md."""

from crates import RULES

BEGIN, END = "<!-- picture of the crates: begin -->", "<!-- picture of the crates: end -->"


def reduced(edges):
    """Returns the edges of a graph without each edge whose nodes are also joined by a longer path."""

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


def diagram(crates):
    """Draws a diagram of the crates as boxes in their layers, the highest layer first. It shows the dependencies that no longer
    path implies."""
    node = lambda name: name.replace("-", "_").replace("/", "_")
    lines = ["```mermaid", "graph TD"]
    for layer in reversed(RULES):
        lines.append(f"    subgraph {layer}_layer[{layer}]")
        lines.append("        " + "; ".join(f"{node(name)}[{name}]" for name in sorted(crates) if crates[name].layer == layer))
        lines.append("    end")
    edges = reduced({name: set(crate.uses) for name, crate in crates.items()})
    lines += [f"    {node(name)} --> {' & '.join(map(node, sorted(edges[name])))}" for name in sorted(edges) if edges[name]]
    return "\n".join([*lines, "```"])


def replaced(page, crates):
    """Returns the page with the picture of the architecture replaced by the picture of these crates."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{diagram(crates)}\n{END}{after}"
