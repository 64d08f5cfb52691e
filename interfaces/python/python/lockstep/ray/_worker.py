"""The code that runs on the workers. One task processes one group of files."""

from __future__ import annotations

import pickle
from typing import NamedTuple

import ray

from .. import _devices, _native
from . import _keys

# A file: its root, its path below the root, the path of its output, its length, and the commitment that it must have.
File = tuple[str, str, str, int, bytes | None]
# The result for a file: its state ("written", "up to date", "not authentic" or "failed"), the lengths of the plain and of the encrypted
# file, the commitment, and an error message.
Result = tuple[str, int, int, bytes | None, str | None]


class Run(NamedTuple):
    """The settings that all tasks of a call have in common. They contain no secret."""

    id: str
    encrypts: bool
    key: bytes
    """The function for the key, pickled."""
    context: bytes
    output: str
    replaces: bool
    syncs: bool
    device: str | None
    threads: int


# The last run of which this process has processed a group. The engine and the key of the run are kept for its next group.
_current: tuple[str, _native.NativeGroups] | None = None


def process(run: Run, group: bytes) -> tuple[str, bytes]:
    """Processes a list of files, and returns the node and a list of results. Both lists are passed in pickled form, because Ray takes
    longer for many tuples. If a task is repeated because a node has died, the outputs that earlier attempts have completed are kept.
    """
    global _current
    files: list[File] = pickle.loads(group)
    if _current is None or _current[0] != run.id:
        _current = None
        _current = run.id, _open(run)
    return ray.get_runtime_context().get_node_id(), pickle.dumps(_current[1].process(files))


def _open(run: Run) -> _native.NativeGroups:
    # The selection applies while NativeGroups is made, which keeps the selected engine. The engines of other tasks in this process
    # do not change.
    with _devices.use(run.device, threads=run.threads):
        return _native.NativeGroups(
            run.encrypts, _keys.fetch(run.key), run.context, run.output, run.replaces, run.syncs
        )
