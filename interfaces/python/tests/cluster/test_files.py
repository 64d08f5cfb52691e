"""Tests of lockstep.ray with three nodes that run on this machine."""

import base64
import functools
import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time

import lockstep
import lockstep.ray
import pytest
import ray
from local_cluster import local_cluster, meets, memory_has
from lockstep.ray import _files, _keys

PAGE = pathlib.Path(__file__).parents[4] / "docs" / "data.md"


@pytest.fixture(scope="module")
def cluster():
    with local_cluster() as started:
        yield started


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "key"
    path.write_bytes(lockstep.generate_key())
    return path


def reads(path):
    """Returns a function that reads a key from a file. Nested functions are pickled with their code, so the workers do not need
    the modules of the tests."""
    path = str(path)

    def fetch():
        with open(path, "rb") as file:
            return file.read()

    return fetch


def content(number, size):
    return hashlib.shake_128(str(number).encode()).digest(size)


def make_files(folder, count, size):
    for number in range(count):
        path = folder / f"d{number % 7}" / f"f{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content(number, size))
    return folder


def check_outputs(source, out, key_file, count):
    """Checks that each file exists once and is complete and right, and that there are no other files."""
    outputs = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    inputs = sorted(f"{source.name}/{path.relative_to(source)}.enc" for path in source.rglob("*") if path.is_file())
    assert outputs == inputs and len(outputs) == count
    for path in outputs:
        with lockstep.open(out / path, key=key_file.read_bytes()) as file:
            assert file.read() == (source.parent / path.removesuffix(".enc")).read_bytes(), path
    lines = [json.loads(line) for line in pathlib.Path(f"{out}.manifest").read_text().splitlines()]
    assert lines[0] == {"format": "lockstep.files/v1", "operation": "encrypt"}
    assert [line["path"] for line in lines[1:]] == outputs and {line["state"] for line in lines[1:]} == {"done"}
    for line in lines[1:]:
        text = (out / line["path"]).read_bytes()
        assert (line["encrypted_bytes"], line["commitment"]) == (len(text), text[24:56].hex())
        assert line["plaintext_bytes"] == (source.parent / line["path"].removesuffix(".enc")).stat().st_size
    assert not os.path.exists(f"{out}.manifest.part")


def test_files_and_back(cluster, tmp_path, key_file):
    source = make_files(tmp_path / "in", 300, 3000)
    (source / "empty").write_bytes(b"")
    (source / "link").symlink_to(source / "empty")
    seen = []
    report = lockstep.ray.encrypt_files(
        source, tmp_path / "out", key=reads(key_file), context=b"", progress=lambda report: seen.append(report.files)
    )
    assert (report.files, report.up_to_date, report.failed) == (301, 0, [])
    assert report.skipped == [(str(source / "link"), "a symbolic link")] and report.plaintext_bytes == 900_000
    assert sum(report.nodes.values()) == 301 and seen[-1] == 301 and seen == sorted(seen)
    (source / "link").unlink()
    check_outputs(source, tmp_path / "out", key_file, 301)
    again = lockstep.ray.encrypt_files(source, tmp_path / "out", key=reads(key_file), resume=True)
    assert (again.files, again.up_to_date) == (301, 301)
    back = lockstep.ray.decrypt_files(
        tmp_path / "out", tmp_path / "back", key=reads(key_file), expected=report.manifest
    )
    assert back.files == 301 and (tmp_path / "back/out/in/d3/f3").read_bytes() == content(3, 3000)
    # `key` is a function that returns the path of a key file in the format of `lockstep keygen`.
    (tmp_path / "line").write_text(f"lockstep-key-256 {key_file.read_bytes().hex()}\n")
    (tmp_path / "line").chmod(0o600)
    path = str(tmp_path / "line")
    one = lockstep.ray.decrypt_files(
        [tmp_path / "out/in/d1/f1.enc"], tmp_path / "one", key=lambda: pathlib.Path(path)
    )
    assert one.files == 1 and (tmp_path / "one/f1").read_bytes() == content(1, 3000)


def test_no_key_where_ray_can_see_it(cluster, tmp_path, key_file, monkeypatch):
    """Neither the arguments of the tasks nor Ray's files nor the memory of Ray's own processes contain the key. The search
    does find the key in the memory of the workers, which proves that the search works."""
    key = key_file.read_bytes()
    arguments = []
    remote = ray.remote

    def recording(function):
        class Recorder:
            def __init__(self, task):
                self._task = task

            def options(self, **options):
                return Recorder(self._task.options(**options))

            def remote(self, *given):
                arguments.append(ray.cloudpickle.dumps(given))
                return self._task.remote(*given)

        return Recorder(remote(function))

    monkeypatch.setattr(ray, "remote", recording)
    source = make_files(tmp_path / "in", 200, 100)
    lockstep.ray.encrypt_files(source, tmp_path / "out", key=reads(key_file))
    # The memory of the workers is searched before the next run, because the next run wipes the key of this run.
    workers = [pid for node in cluster.nodes for pid in cluster.workers(node)]
    own = [pid for pid in cluster.processes() if pid not in workers]
    assert len(own) >= 4
    assert any(memory_has(pid, key) for pid in workers)
    assert not [pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() for pid in own if memory_has(pid, key)]
    # A failure does not send the key to the driver either. In this test, the function that returns the key raises an
    # exception whose message contains the key.
    path = str(key_file)

    def leaks():
        with open(path, "rb") as file:
            secret = file.read()
        raise ValueError(f"no access with {secret!r} {secret.hex()}")

    with pytest.raises(lockstep.ray.KeyUnavailable, match="has raised ValueError in leaks") as caught:
        lockstep.ray.decrypt_files(tmp_path / "out", tmp_path / "back", key=leaks)
    assert len(arguments) >= 9
    error = "".join([str(caught.value), repr(caught.value.__context__), repr(caught.value.__cause__)]).encode()
    files = [path.read_bytes() for path in cluster.logs() if path.stat().st_size < 64 << 20]
    files.append(pathlib.Path(f"{tmp_path}/out.manifest").read_bytes())
    assert any(b"lockstep" in text for text in files)
    forms = [key, key.hex().encode(), key.hex().upper().encode(), base64.b64encode(key), repr(key)[2:-1].encode()]
    for form in forms:
        assert not any(form in text for text in [error, *arguments, *files])


def test_keys_that_are_refused_before_anything_is_written(tmp_path):
    key, text = os.urandom(32), os.urandom(32).hex()
    (tmp_path / "file").write_bytes(b"x")

    class Holder:
        def __init__(self):
            self.key = bytearray(key)

        def __call__(self):
            return bytes(self.key)

    def default(secret=key):
        return secret

    literal = {}
    exec(f"def literal():\n    return {key[:16]!r}", {"__name__": "__main__"}, literal)
    functions = [key, bytearray(key), text, 5, lambda: key, lambda: bytes.fromhex(text), Holder(), default]
    functions += [functools.partial(bytes, key), literal["literal"]]
    for number, function in enumerate(functions):
        with pytest.raises(TypeError, match="fetches the key on the worker") as caught:
            lockstep.ray.encrypt_files(tmp_path / "file", tmp_path / "out", key=function)
        assert key.hex() not in str(caught.value) and repr(key) not in str(caught.value) and text not in str(caught.value), number
    assert os.listdir(tmp_path) == ["file"]
    # Constants in the code of a function are accepted if they cannot be a key.
    assert _keys.fetch(_keys.pickled(lambda: bytes(16))) == bytes(16)
    assert b"arn" in _keys.pickled(functools.partial(len, b"arn:aws:kms:eu-west-1:111122223333:key/1234abcd"))


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda: b"short", "returned 5 bytes: a key has 16 or 32"),
        (lambda: chr(48) * 64, "returned a str"),
        (lambda: None, "returned a NoneType"),
        (lambda: 1 / 0, "raised ZeroDivisionError"),
    ],
)
def test_functions_that_give_no_key(cluster, tmp_path, function, message):
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(lockstep.ray.KeyUnavailable, match=re.escape(message)) as caught:
        lockstep.ray.encrypt_files(tmp_path / "file", tmp_path / "out", key=by_value(function))
    assert "0" * 64 not in str(caught.value)
    assert not list((tmp_path / "out").iterdir()) and not list(tmp_path.glob("out.manifest*"))


def by_value(function):
    """A function that is pickled with its code."""
    return lambda: function()


def test_bad_calls_write_nothing(cluster, tmp_path, key_file):
    source = make_files(tmp_path / "in", 3, 10)
    other = make_files(tmp_path / "x" / "in", 3, 10)
    fetch = reads(key_file)
    bad = [
        (FileNotFoundError, [tmp_path / "nothing"], {}),
        (ValueError, [source, other], {}),
        (TypeError, [source], {"resume": True, "overwrite": True}),
        (ValueError, [source], {"expected": source / "d0/f0"}),
    ]
    before = sorted(tmp_path.rglob("*"))
    for kind, paths, options in bad:
        function = lockstep.ray.decrypt_files if "expected" in options else lockstep.ray.encrypt_files
        with pytest.raises(kind):
            function(paths, tmp_path / "out", key=fetch, **options)
    assert sorted(tmp_path.rglob("*")) == before
    empty = lockstep.ray.encrypt_files([], tmp_path / "out", key=fetch)
    assert empty.files == 0 and lockstep.ray.read_manifest(empty.manifest) == {}


def test_failures_are_listed(cluster, tmp_path, key_file):
    source = make_files(tmp_path / "in", 20, 1000)
    out = tmp_path / "out"
    done = lockstep.ray.encrypt_files(source, out, key=reads(key_file))
    os.truncate(out / "in/d1/f1.enc", 500)
    first, second = out / "in/d2/f2.enc", out / "in/d3/f3.enc"
    one, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(one)
    (out / "new.enc").write_bytes(one)
    with pytest.raises(lockstep.ray.FilesFailed, match="4 of 21 files failed") as caught:
        lockstep.ray.decrypt_files(out, tmp_path / "back", key=reads(key_file), expected=done.manifest)
    report = caught.value.report
    assert report.files == 17
    assert sorted(os.path.basename(path) for path, _ in report.failed) == ["f1.enc", "f2.enc", "f3.enc", "new.enc"]
    entries = lockstep.ray.read_manifest(report.manifest)
    assert len(entries) == 17 and "out/in/d4/f4" in entries
    second.unlink()
    with pytest.raises(FileNotFoundError, match="1 of the files in the manifest are missing"):
        lockstep.ray.decrypt_files(out, tmp_path / "none", key=reads(key_file), expected=done.manifest)
    assert not (tmp_path / "none").exists()
    # With a wrong key, all files fail, and no output appears.
    (tmp_path / "other").write_bytes(os.urandom(32))
    with pytest.raises(lockstep.ray.FilesFailed):
        lockstep.ray.decrypt_files(out, tmp_path / "wrong", key=reads(tmp_path / "other"))
    assert not [path for path in (tmp_path / "wrong").rglob("*") if path.is_file()]


def test_a_full_disk(cluster, tmp_path, key_file):
    small = tmp_path / "small"
    small.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small]).returncode != 0:
        pytest.skip("NOT TESTED: a full disk, which needs the right to mount")
    try:
        source = make_files(tmp_path / "in", 30, 100_000)
        with pytest.raises(lockstep.ray.FilesFailed) as caught:
            lockstep.ray.encrypt_files(source, small / "out", key=reads(key_file), manifest=tmp_path / "m")
        report = caught.value.report
        assert 0 < report.files < 30 and report.files + len(report.failed) == 30
        assert "No space left" in report.failed[0][1]
        outputs = [path for path in (small / "out").rglob("*") if path.is_file()]
        assert len(outputs) == report.files
        for path in outputs:
            with lockstep.open(path, key=key_file.read_bytes()) as file:
                assert len(file.read()) == 100_000
    finally:
        subprocess.run(["umount", small], check=True)


def test_a_call_that_is_stopped(cluster, tmp_path, key_file, monkeypatch):
    monkeypatch.setattr(_files, "GROUP_FILES", 5)
    source = make_files(tmp_path / "in", 100, 100)

    def progress(report):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lockstep.ray.encrypt_files(source, tmp_path / "out", key=reads(key_file), progress=progress)
    assert os.path.exists(tmp_path / "out.manifest.part") and not os.path.exists(tmp_path / "out.manifest")
    report = lockstep.ray.encrypt_files(source, tmp_path / "out", key=reads(key_file), resume=True)
    assert report.up_to_date >= 5
    check_outputs(source, tmp_path / "out", key_file, 100)


def test_a_driver_that_is_killed(cluster, tmp_path, key_file):
    source = make_files(tmp_path / "in", 400, 2000)
    out = tmp_path / "out"
    script = """
        import os, signal, sys
        import lockstep.ray, ray
        from lockstep.ray import _files

        address, key_file, source, out = sys.argv[1:]
        ray.init(address, log_to_driver=False)
        _files.GROUP_FILES = 10

        def fetch():
            with open(key_file, "rb") as file:
                return file.read()

        def progress(report):
            if report.files >= 100:
                os.kill(os.getpid(), signal.SIGKILL)

        lockstep.ray.encrypt_files(source, out, key=fetch, progress=progress)
    """
    command = [sys.executable, "-c", textwrap.dedent(script), cluster.address, key_file, source, out]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not os.path.exists(f"{out}.manifest")
    assert 100 <= len(pathlib.Path(f"{out}.manifest.part").read_text().splitlines()) - 1 < 400
    with pytest.raises(ValueError, match="resume=True"):
        lockstep.ray.encrypt_files(source, out, key=reads(key_file))
    report = lockstep.ray.encrypt_files(source, out, key=reads(key_file), resume=True)
    assert report.files == 400 and report.up_to_date >= 100
    check_outputs(source, out, key_file, 400)


def test_columns(cluster, tmp_path, key_file):
    import numpy
    import pyarrow
    import ray.data

    # The texts end with a zero byte, which numpy's strings would lose.
    rows = [{"id": number, "text": content(number, number % 50) + b"\0", "plain": number * 2} for number in range(500)]
    dataset = ray.data.from_items(rows)
    arguments = {"columns": ["text"], "key": reads(key_file), "context": b"table 1", "bind": "id"}
    made = {"fn_constructor_kwargs": arguments, "concurrency": 1, "batch_size": 100}
    sealed = dataset.map_batches(lockstep.ray.Encrypt, batch_format="pyarrow", **made).materialize()
    cells = {row["id"]: row["text"] for row in sealed.take_all()}
    assert len(cells) == 500 and all(len(cell) == number % 50 + 1 + 40 for number, cell in cells.items())
    assert len({cell[:24] for cell in cells.values()}) == 500
    for batch_format in ["pyarrow", "numpy"]:
        opened = sealed.map_batches(lockstep.ray.Decrypt, batch_format=batch_format, **made)
        assert sorted(opened.take_all(), key=lambda row: row["id"]) == rows
    # Encrypt and Decrypt also work without Ray, in this process. A cell is refused if it comes from another row or
    # column, or was changed.
    with lockstep.use(threads=1):
        decrypt, encrypt = lockstep.ray.Decrypt(**arguments), lockstep.ray.Encrypt(**arguments)
        cipher = lockstep.aead.XAES256GCM(key_file.read_bytes())
        aad = b"lockstep.ray/v1" + (7).to_bytes(8, "big") + b"table 1" + (4).to_bytes(8, "big") + b"text" + b"i7"
        assert cipher.decrypt(cells[7][:24], cells[7][24:], aad) == rows[7]["text"]
        with pytest.raises(lockstep.InvalidTag, match="1 of 2 cells"):
            decrypt(pyarrow.table({"id": [7, 8], "text": [cells[7], cells[9]]}))
        with pytest.raises(lockstep.InvalidTag):
            decrypt(pyarrow.table({"id": [7], "text": [cells[7][:39]]}))
        for bad in [None, "text"]:
            with pytest.raises(TypeError, match="all its cells must be bytes"):
                encrypt(pyarrow.table({"id": [7], "text": [bad]}))
        with pytest.raises(TypeError, match="lose zero bytes"):
            encrypt({"id": [7], "text": numpy.array([b"a"])})
        with lockstep.use(threads=1):
            table = pyarrow.table({"id": [7, 8], "text": [b"", content(8, 1000)]})
            sealed = lockstep.ray.Encrypt(**arguments, device="cuda:emu")(table)
        assert decrypt(sealed)["text"].to_pylist() == table["text"].to_pylist()
        with pytest.raises(KeyError, match="no column 'text'"):
            encrypt({"id": [1]})
        assert decrypt(encrypt(pyarrow.table({"id": [], "text": []}))).num_rows == 0
        with pytest.raises(TypeError, match="has a key"):
            ray.cloudpickle.dumps(encrypt)
        assert key_file.read_bytes().hex() not in repr(encrypt)
        # A key that was given in place of the name of a column is not shown.
        marked = lockstep.ray.Encrypt([key_file.read_bytes().hex(), "text"], key=reads(key_file))
        assert repr(marked) == "<Encrypt: '(a key, not shown)', 'text'>"


def test_the_examples_of_the_page_run(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    section = PAGE.read_text(encoding="utf-8").partition("\n## A cluster\n")[2]
    blocks = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 4
    names = {"__name__": "__main__"}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)


def stops_one(fetch, mark, nodes):
    """Returns a key function for which one worker of these nodes stops after its first group, with all outputs written and no result
    returned. `mark` is then a file with the node of this worker."""
    mark = str(mark)

    def fetch_and_arm():
        import os
        import signal
        import types

        import ray
        from lockstep.ray import _worker

        node = ray.get_runtime_context().get_node_id()
        if node in nodes:
            try:
                with open(mark, "x") as file:
                    file.write(node)
            except FileExistsError:
                return fetch()
            _worker.pickle = types.SimpleNamespace(dumps=lambda results: os.kill(os.getpid(), signal.SIGSTOP))
        return fetch()

    return fetch_and_arm


# This test comes last, because the cluster has only two nodes after it.
def test_a_node_that_is_killed(cluster, tmp_path, key_file, monkeypatch):
    """A worker is stopped before it returns the results of its group. When only the groups of this node are left to do, all processes of
    the node are killed.
    """
    monkeypatch.setattr(_files, "GROUP_FILES", 10)
    source = make_files(tmp_path / "in", 2000, 20_000)
    out = tmp_path / "out"
    mark = tmp_path / "stopped"
    latest, killed = [0, time.monotonic()], []
    names = {node["NodeID"]: node["RayletSocketName"] for node in ray.nodes()}
    others = {node.raylet_socket_name: node for node in cluster.nodes[1:]}

    def progress(report):
        latest[:] = report.files, time.monotonic()

    def kill():
        while not killed:
            time.sleep(0.2)
            if latest[0] and mark.exists() and time.monotonic() - latest[1] > 5:
                killed.append(latest[0])
                cluster.kill(others[names[mark.read_text()]])

    threading.Thread(target=kill, daemon=True).start()
    victims = {node for node, name in names.items() if name in others}
    fetch = meets(stops_one(reads(key_file), mark, victims), tmp_path / "workers", 3)
    report = lockstep.ray.encrypt_files(source, out, key=fetch, progress=progress)
    # The groups of the killed node were processed last, and the outputs that it had written were kept.
    assert len(killed) == 1 and killed[0] < 2000
    assert report.up_to_date >= 10 and mark.read_text() not in report.nodes
    assert report.files == 2000 and len(report.nodes) >= 2
    check_outputs(source, out, key_file, 2000)
    until = time.monotonic() + 60
    while sum(node["Alive"] for node in ray.nodes()) != 2:
        assert time.monotonic() < until
        time.sleep(0.2)
