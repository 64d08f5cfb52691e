#!/usr/bin/env python3
"""Extracts a plot from a page of `lockstep bench --html` as a separate picture.

    tools/bench_page/plot.py PAGE            lists the plots
    tools/bench_page/plot.py PAGE NUMBER     writes that plot to standard output, as SVG
"""

import html
import pathlib
import re
import sys


def plots_of(page):
    """The plots of a page as SVG, in order."""
    return re.findall(r"<svg .*?</svg>\n", page, re.DOTALL)


def title_of(plot):
    return html.unescape(re.search("<title>(.*?)</title>", plot).group(1))


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    try:
        page = pathlib.Path(sys.argv[1]).read_text()
    except (OSError, UnicodeDecodeError) as error:
        sys.exit(f"page-plot: {error}")
    plots = plots_of(page)
    if len(sys.argv) == 2:
        for number, plot in enumerate(plots, 1):
            print(number, title_of(plot))
        return
    if not sys.argv[2].isdigit() or not 1 <= int(sys.argv[2]) <= len(plots):
        sys.exit(f"page-plot: {sys.argv[1]} has plots 1 to {len(plots)}, not {sys.argv[2]}")
    sys.stdout.write(plots[int(sys.argv[2]) - 1])


if __name__ == "__main__":
    main()
