"""Encrypts and decrypts files on a cluster. The files are divided into groups, each group is a task of Ray, and a manifest lists the
results."""

from __future__ import annotations

import errno
import os
import pickle
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import ray

from .. import _manifest, _native
from .._types import Path
from . import _keys, _worker


# The maximum numbers of files and bytes in a group. A group takes about a tenth of a second, so Ray's overhead for a task is small in
# comparison. The arguments and the results of a group have less than 100 KB, so Ray keeps them in the memory of the driver.
GROUP_FILES = 512
GROUP_BYTES = 64 << 20
# The minimum number of groups for each worker, so that the last groups end at about the same time.
GROUPS_PER_WORKER = 4
# Seconds between two checks of the size of the cluster.
_LOOK = 5.0


@dataclass
class Report:
    """The result of `encrypt_files` or `decrypt_files`."""

    manifest: str
    """The path of the manifest."""
    files: int = 0
    """The number of complete outputs."""
    up_to_date: int = 0
    """How many of them were complete before, or after an earlier attempt at the same group."""
    plaintext_bytes: int = 0
    """Bytes of plaintext of all complete outputs."""
    failed: list[tuple[str, str]] = field(default_factory=list)
    """Inputs without an output, with the reasons."""
    skipped: list[tuple[str, str]] = field(default_factory=list)
    """Symbolic links and other inputs that are not regular files, with the reasons."""
    without_input: list[str] = field(default_factory=list)
    """With resume or overwrite: encrypted files of earlier calls whose inputs do not exist any more. They are not deleted; the
    command `lockstep encrypt --delete` deletes such files."""
    nodes: dict[str, int] = field(default_factory=dict)
    """The number of complete outputs by node of Ray."""
    seconds: float = 0.0


class FilesFailed(Exception):
    """Some files have failed, and all others are complete. `report` lists the files that failed."""

    def __init__(self, report: Report) -> None:
        path, error = report.failed[0]
        super().__init__(f"{len(report.failed)} of {report.files + len(report.failed)} files failed; the first is {path}: {error}")
        self.report = report


def encrypt_files(
    paths: Path | Sequence[Path],
    out: Path,
    *,
    key: _keys.KeySource,
    context: bytes = b"",
    resume: bool = False,
    overwrite: bool = False,
    manifest: Path | None = None,
    sync: bool = False,
    device: str | None = None,
    retries: int = 5,
    task_options: dict[str, Any] | None = None,
    progress: Callable[[Report], object] | None = None,
) -> Report:
    """Encrypts files and folders to the folder out, on all nodes of the cluster. All nodes must reach the inputs and the folder
    under the same paths.

    The rules are those of `lockstep encrypt -k -r -O out`: a file is written to out under its own name with `.enc`, a folder a/b
    to out/b; symbolic links are not followed but skipped; outputs get the permission bits and the times of their inputs, and
    appear complete or not at all.

    key: a function without arguments, which each worker calls once. It returns 16 or 32 bytes, or the path of a key file as
    pathlib.Path. Ray pickles the function, but does not get the key. context: bytes that both sides know; decryption needs the
    same bytes.

    resume: continue a run that was stopped. Outputs that are up to date are kept, and outputs of earlier versions of the inputs
    are replaced. overwrite: replace all outputs. Without either, an existing output is an error. If the file system does not
    distinguish the names of two outputs, for example because it ignores case, one of the two files fails in any case. If a file
    changes while it is encrypted, its output does not get the time of the file, and resume encrypts it again.

    manifest: the path of the manifest (default: the name of out with `.manifest`). It lists the outputs with their lengths and
    commitments; during the work, its lines are in a file with `.part` at the end of its name. sync: write each output to stable
    storage.

    device: as in lockstep.use. task_options: options of ray.remote, such as {"num_cpus": 4, "num_gpus": 1}; a task uses as many
    threads as it has CPUs, one by default. retries: how often a group is repeated because its node or its process has died.
    progress: a function that is called with the report after each group.

    Raises FilesFailed at the end if files have failed; KeyUnavailable if the function for the key fails; TypeError for a key
    instead of a function; before anything is written, FileNotFoundError and other OSErrors, and ValueError for outputs that exist,
    for two inputs with one output, and for folders without any file.
    """
    options = _Options(True, out, manifest, resume, overwrite, sync, device, retries, task_options or {}, progress)
    return _run(paths, key, context, None, options)


def decrypt_files(
    paths: Path | Sequence[Path],
    out: Path,
    *,
    key: _keys.KeySource,
    context: bytes = b"",
    expected: Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    manifest: Path | None = None,
    sync: bool = False,
    device: str | None = None,
    retries: int = 5,
    task_options: dict[str, Any] | None = None,
    progress: Callable[[Report], object] | None = None,
) -> Report:
    """Decrypts files and folders to the folder out, on all nodes of the cluster.

    The rules are those of `lockstep decrypt -k -r -O out`: the suffix `.enc` is removed, and files in folders without it are
    skipped. expected: the manifest of the encryption. With this argument, paths must be the output folder of the encryption. A
    missing file is an error before anything is written. A file fails if the manifest does not list it, or if it is not the file
    that the manifest describes. resume keeps outputs that have the length of the plaintext and the time of the input and are not
    older than the last change of the input, and replaces none. The other arguments and the exceptions are those of encrypt_files.

    A wrong key or context, and data that were changed or cut off, fail like other files: FilesFailed has the list.
    """
    options = _Options(False, out, manifest, resume, overwrite, sync, device, retries, task_options or {}, progress)
    return _run(paths, key, context, expected, options)


@dataclass(frozen=True)
class _Options:
    encrypts: bool
    out: Path
    manifest: Path | None
    resume: bool
    overwrite: bool
    sync: bool
    device: str | None
    retries: int
    task_options: dict[str, Any]
    progress: Callable[[Report], object] | None


def _run(
    paths: Path | Sequence[Path], key: _keys.KeySource, context: bytes, expected: Path | None, options: _Options
) -> Report:
    start = time.monotonic()
    function = _keys.pickled(key)
    if options.resume and options.overwrite:
        raise TypeError("give resume or overwrite, not both")
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    out = _absolute(options.out)
    if options.manifest is None and os.path.basename(out.rstrip("/")) in ("", ".", ".."):
        raise ValueError(f"{options.out!r} has no name of its own: give the path of the manifest")
    existing = "resume" if options.resume else "replace" if options.overwrite else "refuse"
    plan = _native.NativePlan(options.encrypts, [os.fspath(path) for path in given], out, existing, options.sync)
    report = Report(_absolute(options.manifest) if options.manifest else f"{out.rstrip('/')}.manifest")
    report.skipped, report.failed = plan.skipped(), plan.failed()
    report.without_input = [os.path.join(out, path) for path in plan.without_input()]
    files: list[_worker.File] = plan.files()
    if expected is not None:
        files = _with_commitments(files, given, expected, report)
    cpus = options.task_options.get("num_cpus", 1)
    run = _worker.Run(
        secrets.token_hex(8),
        options.encrypts,
        function,
        bytes(memoryview(context)),
        out,
        options.overwrite,
        options.sync,
        options.device,
        max(1, int(cpus)),
    )
    operation = "encrypt" if options.encrypts else "decrypt"
    journal = _manifest.Journal(report.manifest, operation, options.resume or options.overwrite)
    try:
        plan.create_folders()
        _process(run, files, journal, report, options)
        # This removes temporary files of dead workers that are more than an hour old. Newer files are kept: a worker on another
        # machine can still use them, and some network file systems do not show its lock.
        plan.remove_abandoned()
        journal.finish(out, {file[2] for file in files})
    finally:
        journal.close()
    report.seconds = time.monotonic() - start
    if report.failed:
        raise FilesFailed(report)
    return report


def _absolute(path: Path) -> str:
    # `..` is not resolved here, since the component before it may be a symbolic link.
    return os.path.join(os.getcwd(), os.fspath(path))


def _with_commitments(
    files: list[_worker.File], given: list[Path], expected: Path, report: Report
) -> list[_worker.File]:
    """Adds the commitments in a manifest to the files."""
    if len(given) != 1 or not os.path.isdir(given[0]):
        raise ValueError("with expected, give one folder: the output folder of the encryption")
    known = _manifest.read(expected)
    inputs = {file[1] for file in files}
    missing = [path for path in known if path not in inputs]
    if missing:
        message = f"{len(missing)} of the files in the manifest are missing; the first is"
        raise FileNotFoundError(errno.ENOENT, message, missing[0])
    listed: list[_worker.File] = []
    for root, path, output, size, _ in files:
        entry = known.get(path)
        if entry is None:
            report.failed.append((os.path.join(root, path), "the manifest does not list this file"))
        else:
            listed.append((root, path, output, size, entry.commitment))
    return listed


def _groups(files: list[_worker.File], workers: int) -> Iterator[list[_worker.File]]:
    """Divides the files into groups. The first groups have the longest files, so that the last groups take little time."""
    shares = GROUPS_PER_WORKER * max(1, workers)
    most = max(1, min(GROUP_FILES, -(-len(files) // shares)))
    size = max(1, min(GROUP_BYTES, -(-sum(file[3] for file in files) // shares)))
    group: list[_worker.File] = []
    room = size
    for file in sorted(files, key=lambda file: file[3] < GROUP_BYTES):
        if group and (len(group) == most or room < file[3]):
            yield group
            group, room = [], size
        group.append(file)
        room -= file[3]
    if group:
        yield group


class _Cluster:
    """The number of workers that the cluster has now. It may change."""

    def __init__(self, cpus: float) -> None:
        """cpus: the number of CPUs of one task."""
        self._cpus = cpus
        self._workers = 1
        self._next = 0.0

    def workers(self) -> int:
        if time.monotonic() >= self._next:
            self._workers = max(1, int(ray.cluster_resources().get("CPU", 1) / self._cpus))
            self._next = time.monotonic() + _LOOK
        return self._workers


def _process(
    run: _worker.Run, files: list[_worker.File], journal: _manifest.Journal, report: Report, options: _Options
) -> None:
    """Submits the groups to Ray, and collects the results. Only as many groups are submitted at a time as the workers need."""
    if not ray.is_initialized():
        ray.init()
    cluster = _Cluster(float(options.task_options.get("num_cpus", 1)) or 1.0)
    name = "lockstep encrypt" if run.encrypts else "lockstep decrypt"
    settings = {"num_cpus": 1, "max_retries": options.retries, "name": name, **options.task_options}
    task = ray.remote(_worker.process).options(**settings)
    groups = _groups(files, cluster.workers())
    pending: dict[Any, list[_worker.File]] = {}
    try:
        while True:
            while len(pending) < 2 * cluster.workers() + 2 and (group := next(groups, None)):
                pending[task.remote(run, pickle.dumps(group))] = group
            if not pending:
                return
            ready, _ = ray.wait(list(pending))
            for reference in ready:
                _collect(reference, pending.pop(reference), journal, report)
                if options.progress is not None:
                    options.progress(report)
    finally:
        for reference in pending:
            ray.cancel(reference)


def _collect(reference: Any, group: list[_worker.File], journal: _manifest.Journal, report: Report) -> None:
    """Enters the results of a group into the journal and the report."""
    try:
        node, pickled = cast("tuple[str, bytes]", ray.get(reference))
        results: list[_worker.Result] = pickle.loads(pickled)
    except ray.exceptions.RayTaskError as error:
        # The error, such as a missing key, concerns all groups. Only the exception of this package is raised, without Ray's message.
        raise (error.cause if isinstance(error.cause, BaseException) else error) from None
    except ray.exceptions.RayError as error:
        why = f"the workers have died, and {type(error).__name__} is the last error: look at Ray's logs, and resume"
        node, results = "", [("failed", 0, 0, None, why)] * len(group)
    journal.add((file[2], _manifest.line(file[2], *result)) for file, result in zip(group, results))
    for file, (state, plaintext, _, _, problem) in zip(group, results):
        if problem is not None:
            report.failed.append((os.path.join(file[0], file[1]), problem))
            continue
        report.files += 1
        report.plaintext_bytes += plaintext
        report.up_to_date += state == "up to date"
        report.nodes[node] = report.nodes.get(node, 0) + 1
