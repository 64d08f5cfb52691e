#!/usr/bin/env python3
"""Checks that the crates of the workspace are ready to be published.

    tools/publish_check.py              manifests and lists of files: seconds
    tools/publish_check.py --release    also that placeholders have been replaced, for the release itself

For each crate without `publish = false`: the fields that crates.io shows; dependencies on crates of the workspace are published and
have a version, development dependencies on them have no version (cargo omits such dependencies); the package has the licences and the
README, and every file that its sources include. `make publish-check` also compiles the packages.
"""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDED = re.compile(r'include_(?:str|bytes)!\(\s*"([^"]+)"')


def cargo(*arguments):
    done = subprocess.run(["cargo", *arguments], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{done.stderr}publish-check: cargo {' '.join(arguments)} failed")
    return done.stdout


def field_problems(package):
    for field in ("description", "license", "repository", "readme", "rust_version"):
        if not package[field]:
            yield f"no {field}"
    for field in ("keywords", "categories"):
        if not 1 <= len(package[field]) <= 5:
            yield f"1 to 5 {field} are needed"
    for keyword in package["keywords"]:
        if not re.fullmatch(r"[a-z0-9][a-z0-9_+-]{0,19}", keyword):
            yield f"keyword {keyword!r}: at most 20 letters, digits and hyphens"


def dependency_problems(package, published, members):
    for dependency in package["dependencies"]:
        name, without_version = dependency["name"], dependency["req"] == "*"
        if name not in members:
            if without_version:
                yield f"{name} has no version"
        elif dependency["kind"] == "dev":
            if not without_version:
                yield f"the development dependency {name} has a version: name its path only"
        elif name not in published:
            yield f"{name} is not published"
        elif without_version:
            yield f"{name} has no version: add it to [workspace.dependencies]"


def file_problems(package):
    files = set(cargo("package", "--list", "--allow-dirty", "--locked", "-p", package["name"]).split())
    for wanted in ("README.md", "LICENSE-MIT", "LICENSE-APACHE"):
        if wanted not in files:
            yield f"the package has no {wanted}"
    folder = pathlib.Path(package["manifest_path"]).parent
    for name in sorted(files):
        # Files that cargo adds to a package are skipped, because the folder does not contain them.
        if not name.endswith(".rs") or not (folder / name).exists():
            continue
        for included in INCLUDED.findall((folder / name).read_text(encoding="utf-8")):
            path = (folder / name).parent / included
            if not path.resolve().is_relative_to(folder) or str(path.resolve().relative_to(folder)) not in files:
                yield f"{name} includes {included}, which the package does not have"


def release_problems(version):
    if ".invalid" in (ROOT / "Cargo.toml").read_text(encoding="utf-8"):
        yield "`repository` in Cargo.toml is a placeholder"
    if "@invalid" in (ROOT / "tools" / "deb.sh").read_text(encoding="utf-8"):
        yield "the maintainer in tools/deb.sh is a placeholder"
    if f"## [{version}]" not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"):
        yield f"CHANGELOG.md has no section for {version}"


def main():
    packages = json.loads(cargo("metadata", "--no-deps", "--format-version", "1", "--locked"))["packages"]
    members = {package["name"] for package in packages}
    published = [package for package in packages if package["publish"] != []]
    names = {package["name"] for package in published}
    problems = []
    for package in published:
        found = [*field_problems(package), *dependency_problems(package, names, members), *file_problems(package)]
        problems += [f"{package['name']}: {problem}" for problem in found]
    if "--release" in sys.argv[1:]:
        problems += release_problems(published[0]["version"])
    if problems:
        sys.exit("\n".join(f"publish-check: {problem}" for problem in problems))
    print(f"publish-check: {len(names)} of {len(members)} crates are ready to be published")


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--release"]):
        sys.exit(__doc__)
    main()
