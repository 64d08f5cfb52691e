"""The crates of the workspace, their layers, and the rules for the dependencies between layers."""

import json
import pathlib
import subprocess
from dataclasses import dataclass

# The layers from the bottom to the top, each with the layers that its crates may
# use. A layer is a folder of the repository. The rules do not apply to development dependencies. So only the tests of
# other layers may use `dev`.
RULES = {
    "engine": ("engine",),
    "devices": ("engine", "devices"),
    "library": ("engine", "devices", "library"),
    "interfaces": ("engine", "devices", "library", "interfaces"),
    "lab": ("engine", "devices", "library", "interfaces", "lab"),
    "dev": ("engine", "devices", "library", "interfaces", "lab", "dev"),
}


@dataclass(frozen=True)
class Crate:
    """A crate of the workspace."""

    # The name of the crate's folder, such as `gpu-host`. If a lower layer has a folder of this name, the name starts with the
    # layer, as in `lab/provider`.
    name: str
    layer: str
    folder: pathlib.Path
    # The names of the workspace's crates that the crate uses, including optional dependencies, but not those of its tests.
    uses: frozenset


def read(root):
    """The crates of the workspace in this folder by name, as `cargo metadata` lists them."""
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"]
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    return from_metadata(json.loads(done.stdout), root)


def from_metadata(metadata, root):
    """The crates by name."""
    folders = {package["name"]: pathlib.Path(package["manifest_path"]).parent for package in metadata["packages"]}
    layers = {package: folder.relative_to(root).parts[0] for package, folder in folders.items()}
    names, order = {}, list(RULES)
    for package in sorted(folders, key=lambda name: (order.index(layers[name]) if layers[name] in order else -1, name)):
        name = folders[package].name
        # If a lower layer has a folder of this name, the name of the layer is added.
        names[package] = f"{layers[package]}/{name}" if name in names.values() else name
    crates = {}
    for package in metadata["packages"]:
        name = package["name"]
        uses = {d["name"] for d in package["dependencies"] if d["kind"] != "dev" and d["name"] in folders}
        crates[names[name]] = Crate(names[name], layers[name], folders[name], frozenset(names[used] for used in uses))
    return crates


def wrong_dependencies(crates):
    """Returns the dependencies that the rules forbid. Each is a pair of crates, of which the first uses the second, with the
    reason."""
    wrong = {}
    for crate in crates.values():
        if crate.layer not in RULES:
            wrong[crate.name, crate.name] = f"{crate.name} is in the folder {crate.layer}/, which has no rule"
            continue
        for used in crate.uses:
            if crates[used].layer not in RULES[crate.layer]:
                reason = f"a crate in {crate.layer}/ must not use a crate in {crates[used].layer}/"
                wrong[crate.name, used] = f"{crate.name} uses {used}: {reason}"
    return wrong
