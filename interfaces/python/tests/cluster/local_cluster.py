"""A cluster of Ray on this machine, and its processes."""

import contextlib
import os
import pathlib
import shutil
import signal
import tempfile

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
# Ray must not end workers only because the memory of the machine that runs the tests is full.
os.environ.setdefault("RAY_memory_monitor_refresh_ms", "0")
# The nodes use the address 127.0.0.1, and do not depend on the network of the machine. The variable has this effect on Linux too. Ray reads
# it when it is imported, so this module must be imported first.
os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")

import ray
from ray.cluster_utils import Cluster

# Ray permits no object store below 75 MiB.
NODE = {"num_cpus": 1, "object_store_memory": 78 << 20, "include_dashboard": False}
# With these settings, Ray notices after some seconds that a node has died.
SYSTEM = {"health_check_initial_delay_ms": 2000, "health_check_period_ms": 1000, "health_check_failure_threshold": 5}


class LocalCluster:
    """Three nodes with one CPU each, and this process as the driver."""

    def __init__(self, folder):
        self.folder = folder
        self._cluster = Cluster(initialize_head=True, head_node_args={**NODE, "_system_config": SYSTEM})
        self.nodes = [self._cluster.head_node, self._cluster.add_node(**NODE), self._cluster.add_node(**NODE)]
        self.address = self._cluster.address
        assert self.address.startswith("127.0.0.1:"), "local_cluster must be imported before Ray"
        ray.init(self.address, log_to_driver=False, include_dashboard=False)

    def logs(self):
        """All files that Ray has written for this session."""
        return [path for path in pathlib.Path(self.folder).rglob("*") if path.is_file() and not path.is_symlink()]

    def processes(self, node=None):
        """The numbers of the processes of a node, or of all nodes. They are Ray's own processes and the workers."""
        roots = [one for one in self.nodes if node in (None, one)]
        own = [info.process.pid for one in roots for kind in one.all_processes.values() for info in kind]
        return _with_children(own)

    def workers(self, node):
        """The processes of the workers of a node."""
        return [pid for pid in self.processes(node) if _command(pid).startswith(b"ray::")]

    def kill(self, node):
        """Kills all processes of a node at once."""
        for pid in self.processes(node):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def shutdown(self):
        ray.shutdown()
        self._cluster.shutdown()


@contextlib.contextmanager
def local_cluster():
    # A path of a Unix socket has at most about 100 characters, so Ray's folder needs a short path.
    parent = os.environ.get("RAY_TMPDIR")
    folder = tempfile.mkdtemp(prefix="ls", dir=parent or "/tmp")
    os.mkdir(os.path.join(folder, "ray"))
    os.environ["RAY_TMPDIR"] = folder
    try:
        started = LocalCluster(folder)
        try:
            yield started
        finally:
            started.shutdown()
    finally:
        if parent:
            os.environ["RAY_TMPDIR"] = parent
        else:
            del os.environ["RAY_TMPDIR"]
        shutil.rmtree(folder, ignore_errors=True)


def meets(fetch, folder, count):
    """Returns a key function that waits until `count` workers have called it, so that no worker does the work of another worker."""
    folder.mkdir()
    folder = str(folder)

    def fetch_together():
        import os
        import time

        open(os.path.join(folder, str(os.getpid())), "w").close()
        until = time.monotonic() + 60
        while len(os.listdir(folder)) < count and time.monotonic() < until:
            time.sleep(0.01)
        return fetch()

    return fetch_together


def _command(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _with_children(pids):
    parents = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The text is split after the name of the program, because the name, which is in brackets, may contain blanks.
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found = list(pids)
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid and child not in found]
    return found


def memory_has(pid, secret):
    """True if the writable memory of a process contains these bytes."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
            places, rights, *_ = line.split()
            start, end = (int(place, 16) for place in places.split("-"))
            if not rights.startswith("rw") or end - start > 1 << 30:
                continue
            last = b""
            with contextlib.suppress(OSError, ValueError, OverflowError):
                memory.seek(start)
                while start < end and (part := memory.read(min(end - start, 16 << 20))):
                    if secret in last + part:
                        return True
                    last = part[-len(secret) :]
                    start += len(part)
    return False
