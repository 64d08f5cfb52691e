"""Manifests. A manifest lists encrypted files that belong together, with data that identify each file.

A manifest is a text file of JSON lines. The first line has the format and the operation. Each further line is a file: its path below
the output folder, its state, and for a complete file the lengths in bytes and the commitment, in hexadecimal digits. A manifest
contains no secrets, but it shows the names and the sizes of the files.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from ._shown import shown, shown_path

FORMAT = "lockstep.files/v1"
DONE = "done"


class Entry(NamedTuple):
    """A file in a manifest."""

    state: str
    plaintext_bytes: int
    encrypted_bytes: int
    commitment: bytes


def line(path: str, state: str, plaintext: int, encrypted: int, commitment: bytes | None, error: str | None) -> str:
    """The line of a manifest for a file. If the path is not UTF-8, the line contains surrogates, as os.fsdecode makes them."""
    if commitment is None:
        return json.dumps({"path": path, "state": state, "error": error})
    # The line is assembled without `json.dumps` of a dictionary, which would take ten times as long.
    sizes = f'"plaintext_bytes": {plaintext}, "encrypted_bytes": {encrypted}'
    return f'{{"path": {json.dumps(path)}, "state": "{DONE}", {sizes}, "commitment": "{commitment.hex()}"}}'


def read(manifest: str | os.PathLike[str]) -> dict[str, Entry]:
    """Reads a manifest. Returns its complete files, by path.

    Raises ValueError for a file that is no manifest, and OSError.
    """
    text = None
    with contextlib.suppress(FileNotFoundError), open(manifest, encoding="utf-8") as file:
        text = file.read()
    if text is None:
        # Python's own exception is not raised, because it contains the name, which can be a key.
        raise FileNotFoundError(errno.ENOENT, "there is no manifest", shown_path(manifest))
    lines = _parse(text.splitlines(), os.fspath(manifest), None)
    entries = {}
    for path, text in lines.items():
        entry = json.loads(text)
        try:
            if entry["state"] == DONE:
                commitment = bytes.fromhex(entry["commitment"])
                entries[path] = Entry(DONE, entry["plaintext_bytes"], entry["encrypted_bytes"], commitment)
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"{os.fspath(manifest)}: the line of {path!r} is not complete") from None
    return entries


def _parse(lines: list[str], name: str, operation: str | None) -> dict[str, str]:
    """The lines of the files by path; later lines replace earlier ones."""
    head: Any = None
    try:
        head = json.loads(lines[0])
        if head["format"] != FORMAT:
            raise ValueError
    except (IndexError, KeyError, TypeError, ValueError):
        raise ValueError(f"{name} is no manifest of the format {FORMAT}") from None
    if operation is not None and head["operation"] != operation:
        raise ValueError(f"the manifest {name} is of the operation {shown(head['operation'])}, not {shown(operation)}: give another one")
    found = {}
    for number, text in enumerate(lines[1:], 2):
        try:
            found[json.loads(text)["path"]] = text
        except (KeyError, TypeError, ValueError):
            # A program that was killed while it was writing leaves a part of a line.
            if operation is None:
                raise ValueError(f"{name}, line {number}: this is not the line of a file") from None
    return found


class Journal:
    """A manifest that is being written. During the work, lines are appended to a separate file in the same folder, and the
    manifest appears complete at the end. If the program is killed, the next run continues with the lines of this file.
    """

    def __init__(self, manifest: str, operation: str, continues: bool) -> None:
        """continues: keep the lines of an earlier manifest, or of an earlier run that was stopped."""
        self.path = manifest
        self._part = f"{manifest}.part"
        self._lines: dict[str, str] = {}
        self._head = json.dumps({"format": FORMAT, "operation": operation})
        if os.path.lexists(manifest):
            if not continues:
                message = "the manifest exists: continue with resume=True, or give another one"
                raise FileExistsError(errno.EEXIST, message, shown_path(manifest))
            with open(manifest, encoding="utf-8") as file:
                self._lines.update(_parse(file.read().splitlines(), manifest, operation))
        if not continues and os.path.lexists(self._part):
            message = "an earlier run was stopped: continue it with resume=True"
            raise FileExistsError(errno.EEXIST, message, shown_path(self._part))
        self._file = open(self._part, "a+", encoding="utf-8")
        self._process = os.getpid()
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._file.seek(0)
            text = self._file.read()
            self._is_new = not text
            if text:
                self._lines.update(_parse(text.splitlines(), self._part, operation))
            # A killed program can leave an incomplete last line. The line break ends this line.
            self._file.write(self._head + "\n" if not text else "" if text.endswith("\n") else "\n")
            self._file.flush()
        except BlockingIOError:
            self._file.close()
            message = "another program is writing the manifest: wait for its end"
            raise BlockingIOError(errno.EAGAIN, message, shown_path(manifest)) from None
        except BaseException:
            self._file.close()
            raise

    def add(self, lines: Iterable[tuple[str, str]]) -> None:
        """Adds files. Each is given by its path and its line."""
        added = dict(lines)
        self._is_new = False
        self._lines.update(added)
        self._file.write("".join(f"{text}\n" for text in added.values()))
        self._file.flush()

    def finish(self, folder: str, known: set[str]) -> None:
        """Writes the manifest, sorted by path. Lines of earlier runs remain if their files exist in the folder; `known` are the
        paths of this run, which remain in any case.
        """
        paths = sorted(self._lines)
        kept = [path for path in paths if path in known or os.path.lexists(os.path.join(folder, path))]
        new = f"{self.path}.new"
        with open(new, "w", encoding="utf-8") as file:
            file.write("\n".join([self._head, *map(self._lines.__getitem__, kept)]) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self.path)
        os.unlink(self._part)
        self._file.close()

    def close(self) -> None:
        """Closes the file. Without `finish` the lines remain for a later run. A file without lines is removed, but not by the child
        of a fork.
        """
        if not self._file.closed and self._is_new and self._process == os.getpid():
            os.unlink(self._part)
        self._file.close()
