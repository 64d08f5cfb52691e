#!/usr/bin/env python3
"""Checks a page of `lockstep bench --html` as a browser shows it.

    tools/bench_page/check.py LOCKSTEP [--keep FOLDER]     measures all suites quickly, and checks the resulting page
    tools/bench_page/check.py --page FILE [--keep FOLDER]  checks an existing page
    tools/bench_page/check.py --self-test                  tests what needs no browser

In a headless Chromium (Debian's chromium-headless-shell or chromium; `tools/setup.sh browser` installs one): the page loads
no resources, writes nothing to the console, shows every plot with the colours of all of its series, and is not wider
than the window of a desktop or a phone, with light and dark colours. --keep keeps the screenshots in a folder. Controls: the check must
reject a page that is too wide, one that loads a resource, and one with an empty plot.
"""

import argparse
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True

from browser import Browser  # noqa: E402
from png import pixels  # noqa: E402

BROWSERS = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]
# Time limit in seconds for the measurements of the program.
MEASURED = 1200
# Width and height of the window in pixels, and True for a phone.
WINDOWS = {"desktop": (1280, 900, False), "phone": (390, 844, True)}


# A script that returns, for each plot, its position and, for each series, its colour (the stroke of lines, the fill of bars) and
# the area in which the series is drawn. The area excludes the legend, which has the same colours.
PLOTS = """const colour = one => one.getAttribute('stroke') || one.getAttribute('fill');
function around(series, box) {
  const all = series.map(one => one.getBoundingClientRect());
  const left = Math.max(box.left, Math.min(...all.map(one => one.left)) - 3);
  const top = Math.max(box.top, Math.min(...all.map(one => one.top)) - 3);
  const right = Math.min(box.right, Math.max(...all.map(one => one.right)) + 3);
  const bottom = Math.min(box.bottom, Math.max(...all.map(one => one.bottom)) + 3);
  return { x: left + scrollX, y: top + scrollY, width: right - left, height: bottom - top };
}
JSON.stringify([...document.querySelectorAll('figure svg')].map(svg => {
  const box = svg.getBoundingClientRect();
  const series = [...svg.querySelectorAll('.series')];
  return { x: box.x + scrollX, y: box.y + scrollY, width: box.width, height: box.height,
           title: svg.querySelector('title').textContent,
           colours: [...new Set(series.map(colour))].map(name => [name, around(series.filter(one => colour(one) == name), box)]),
           outside: [...svg.querySelectorAll('text')].filter(text => {
             const letters = text.getBoundingClientRect();
             return letters.left < box.left - 1 || letters.right > box.right + 1 || letters.bottom > box.bottom + 1;
           }).map(text => text.textContent),
           letters: Math.min(...[...svg.querySelectorAll('text')].map(text => text.getBoundingClientRect().height)) };
}))"""


def look(browser, url, keep=None):
    """The errors of a page: a list of sentences."""
    wrong = []
    for method in ["Page.enable", "Network.enable", "Runtime.enable", "Log.enable"]:
        browser.call(method)
    for name, (width, height, phone) in WINDOWS.items():
        for night in [False, True]:
            where = f"{name}{', by night' if night else ''}"
            browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
            scheme = [{"name": "prefers-color-scheme", "value": "dark" if night else "light"}]
            browser.call("Emulation.setEmulatedMedia", features=scheme)
            browser.events.clear()
            browser.call("Page.navigate", url=url)
            browser.wait_for("Page.loadEventFired")
            for event in browser.events:
                method, params = event.get("method"), event.get("params", {})
                if method == "Network.requestWillBeSent":
                    asked = params["request"]["url"]
                    if asked.split("#")[0] != url and not asked.startswith("data:"):
                        wrong.append(f"{where}: it asks for {asked}")
                elif method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
                    wrong.append(f"{where}: on the console: {json.dumps(params)[:300]}")
            wide = browser.evaluate("document.documentElement.scrollWidth")
            if wide > width:
                wrong.append(f"{where}: it is {wide} pixels wide, the window {width}")
            plots = json.loads(browser.evaluate(PLOTS))
            if not plots:
                wrong.append(f"{where}: no plots")
            for number, plot in enumerate(plots):
                if not plot["colours"]:
                    wrong.append(f"{where}: nothing is drawn in: {plot['title']}")
                for text in plot["outside"]:
                    wrong.append(f"{where}: `{text}` is cut off in: {plot['title']}")
                if plot["letters"] < 9:
                    wrong.append(f"{where}: letters {plot['letters']} pixels high in: {plot['title']}")
                # A phone shows only a part of a wide plot, which can be scrolled. So colours are checked only in windows that show
                # the whole plot.
                if not phone:
                    for colour, place in plot["colours"]:
                        seen = set()
                        if place["width"] > 0 and place["height"] > 0:
                            clip = place | {"scale": 1}
                            shot = browser.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)["data"]
                            seen = pixels(base64.b64decode(shot))[2]
                        if bytes.fromhex(colour.lstrip("#")) not in seen:
                            wrong.append(f"{where}: the colour {colour} is not to be seen in: {plot['title']}")
            if keep:
                shot = browser.call("Page.captureScreenshot", captureBeyondViewport=True, clip={
                    "x": 0, "y": 0, "width": width, "scale": 1,
                    "height": min(browser.evaluate("document.documentElement.scrollHeight"), 12000)})
                path = pathlib.Path(keep) / f"{name}{'-night' if night else ''}.png"
                path.write_bytes(base64.b64decode(shot["data"]))
    return wrong


CONTROLS = {
    "too wide": ("<div style='width:3000px'>wide</div>{plot}", "pixels wide"),
    "loads something": ("<img src='missing.png'>{plot}", "it asks for"),
    "an error": ("<script>nothing()</script>{plot}", "on the console"),
    "an empty plot": ("<figure><svg width='9' height='9'><title>t</title><text>a</text></svg></figure>", "nothing is drawn"),
    "a text that is cut off": (
        "<figure><svg width='90' height='90'><title>t</title><text y='20' x='80'>letters</text>"
        "<path class='series' d='M0 40h50' stroke='#123456' stroke-width='8'/></svg></figure>", "is cut off"),
    "a series that is not seen": (
        "<figure><svg width='90' height='90'><title>t</title><text y='20'>a</text>"
        "<path class='series' d='M900 0h9' stroke='#123456'/></svg></figure>", "not to be seen"),
    "a series that only its legend shows": (
        "<figure><svg width='90' height='90'><title>t</title><text y='20'>a</text>"
        "<path class='series' d='M0 40h50' stroke='#123456' stroke-width='8'/><rect y='30' width='60' height='20'/>"
        "<path d='M0 80h20' stroke='#123456' stroke-width='8'/></svg></figure>", "not to be seen"),
}
GOOD = ("<figure><svg width='90' height='90'><title>t</title><text y='20'>a</text>"
        "<path class='series' d='M0 40h50' stroke='#123456' stroke-width='8'/>"
        "<path d='M0 80h20' stroke='#123456' stroke-width='8'/></svg></figure>")


def controls(browser, folder):
    """Checks that each faulty page is rejected and that the correct page is accepted."""
    head = ("<!DOCTYPE html><meta charset=utf-8><meta name=viewport content='width=device-width'><link rel=icon href='data:,'>"
            "<title>c</title>")
    page = pathlib.Path(folder) / "control.html"
    page.write_text(head + GOOD)
    found = look(browser, page.as_uri())
    if found:
        sys.exit(f"page-check: a good page is refused: {found}")
    for name, (body, words) in CONTROLS.items():
        page.write_text(head + body.format(plot=GOOD))
        if not any(words in sentence for sentence in look(browser, page.as_uri())):
            sys.exit(f"page-check: the control `{name}` was not found out")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("lockstep", nargs="?")
    parser.add_argument("--page")
    parser.add_argument("--keep")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        found = unittest.defaultTestLoader.discover(str(pathlib.Path(__file__).resolve().parent / "tests"))
        sys.exit(not unittest.TextTestRunner().run(found).wasSuccessful())
    if bool(options.lockstep) == bool(options.page):
        parser.error("give the program, or --page FILE")
    program = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if not program:
        message = "there is no Chromium: `tools/setup.sh browser` installs one"
        if os.environ.get("CI"):
            sys.exit(f"page-check: {message}")
        print(f"NOT TESTED: the page of `lockstep bench`: {message}")
        return
    with tempfile.TemporaryDirectory(prefix="lockstep-page.") as folder:
        page = pathlib.Path(options.page).resolve() if options.page else pathlib.Path(folder) / "page.html"
        if options.lockstep:
            command = [options.lockstep, "bench", "all", "--quick", "--quiet", "--html", str(page)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=MEASURED)
        if options.keep:
            pathlib.Path(options.keep).mkdir(parents=True, exist_ok=True)
        browser = Browser(program)
        try:
            controls(browser, folder)
            wrong = look(browser, page.as_uri(), options.keep)
        finally:
            browser.close()
    for sentence in wrong:
        print(f"page-check: {sentence}", file=sys.stderr)
    if wrong:
        sys.exit(1)
    print("page-check: the page of `lockstep bench` is as it should be, on a desktop and a phone, by day and by night")


if __name__ == "__main__":
    main()
