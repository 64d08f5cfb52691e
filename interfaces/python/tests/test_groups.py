"""Tests of the parts of lockstep.ray that need no cluster: plans, groups of files and manifests. The results are compared with those of
the command."""

import os
import pathlib
import subprocess
import sys
import time

import lockstep
import pytest
from conftest import data, run_python, started
from lockstep import _manifest
from lockstep._native import NativeGroups, NativePlan


def files_below(folder):
    """The paths and the contents of the files in a folder."""
    found = pathlib.Path(folder).rglob("*")
    return {str(path.relative_to(folder)): path.read_bytes() for path in found if path.is_file()}


def command(*arguments):
    done = subprocess.run([sys.executable, "-m", "lockstep", *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done


def process(encrypts, inputs, out, key, *, context=b"", existing="refuse", expected=None):
    """Plans and processes files in this process; returns the plan and the results."""
    plan = NativePlan(encrypts, [str(path) for path in inputs], str(out), existing, False)
    plan.create_folders()
    groups = NativeGroups(encrypts, key, context, str(out), existing == "replace", False)
    return plan, groups.process([(*file[:4], (expected or {}).get(file[1])) for file in plan.files()])


def test_groups_keep_the_engine_of_their_creation(tmp_path):
    key = bytes(32)
    with lockstep.use(threads=3):
        groups = NativeGroups(True, key, b"", str(tmp_path), False, False)
    with lockstep.use(threads=1):
        assert groups.threads() == 3


def states(results):
    return sorted(result[0] for result in results)


@pytest.fixture
def tree(tmp_path):
    """A folder with files of several lengths, an empty folder, a link, and a name that is not UTF-8."""
    folder = tmp_path / "photos"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "empty").mkdir()
    for name, size in [("zero", 0), ("a/one", 1), ("a/b/chunk", 16384), ("a/b/long", 100_000), ("x.enc", 5)]:
        (folder / name).write_bytes(data(size))
        os.utime(folder / name, ns=(1, 1_700_000_000_123_456_789 + size))
    (folder / os.fsdecode(b"\xff\xfe")).write_bytes(b"name")
    (folder / "a" / "one").chmod(0o640)
    (folder / "link").symlink_to(folder / "zero")
    # The pause makes the outputs newer than their inputs. An output counts as up to date only if it is newer than the last change of
    # its input.
    time.sleep(0.02)
    return folder


def test_groups_write_what_the_command_writes(tree, tmp_path, key):
    single = tmp_path / "single.txt"
    single.write_bytes(b"single")
    key_file = tmp_path / "key"
    key_file.write_text(f"lockstep-key-256 {key.hex()}\n")
    key_file.chmod(0o600)
    command("encrypt", "-q", "-k", key_file, "-r", "-O", tmp_path / "theirs", tree, single)
    plan, results = process(True, [tree, single], tmp_path / "ours", key)
    assert states(results) == ["written"] * 7
    assert [reason for _, reason in plan.skipped()] == ["a symbolic link"] and plan.failed() == []
    ours, theirs = files_below(tmp_path / "ours"), files_below(tmp_path / "theirs")
    assert ours.keys() == theirs.keys() and (tmp_path / "ours/photos/empty").is_dir()
    assert {name: len(text) for name, text in ours.items()} == {name: len(text) for name, text in theirs.items()}
    for name in ours:
        a, b = (tmp_path / side / name for side in ("ours", "theirs"))
        assert (a.stat().st_mtime_ns, a.stat().st_mode) == (b.stat().st_mtime_ns, b.stat().st_mode), name
    # The package decrypts what the command has encrypted, and the command decrypts what the package has
    # encrypted.
    command("decrypt", "-q", "-k", key_file, "-r", "-O", tmp_path / "back", tmp_path / "ours/photos")
    expected = {name: text for name, text in files_below(tree).items() if name != "link"}
    assert files_below(tmp_path / "back/photos") == expected
    _, results = process(False, [tmp_path / "theirs/photos"], tmp_path / "again", key)
    assert states(results) == ["written"] * 6 and files_below(tmp_path / "again/photos") == expected
    assert (tmp_path / "again/photos/a/one").stat().st_mode & 0o777 == 0o640


def test_results_have_lengths_and_the_commitment(tmp_path, key):
    path = tmp_path / "file"
    path.write_bytes(data(20_000))
    _, [(state, plaintext, encrypted, commitment, error)] = process(True, [path], tmp_path / "out", key)
    written = (tmp_path / "out/file.enc").read_bytes()
    assert (state, plaintext, encrypted, error) == ("written", 20_000, len(written), None)
    assert commitment == written[24:56]
    _, [result] = process(False, [tmp_path / "out/file.enc"], tmp_path / "back", key)
    assert result == ("written", 20_000, len(written), commitment, None)


def test_outputs_that_exist(tree, tmp_path, key):
    out = tmp_path / "out"
    process(True, [tree], out, key)
    before = files_below(out)
    with pytest.raises(ValueError, match="6 of the outputs exist.*resume=True"):
        process(True, [tree], out, key)
    assert states(process(True, [tree], out, key, existing="resume")[1]) == ["up to date"] * 6
    assert files_below(out) == before
    # An input that was changed is encrypted again, and an output that is missing is written again.
    (tree / "a/one").write_bytes(b"2")
    (out / "photos/zero.enc").unlink()
    results = process(True, [tree], out, key, existing="resume")[1]
    assert states(results) == ["up to date"] * 4 + ["written"] * 2
    # Outputs that were encrypted with another key are neither replaced nor counted as up to date.
    results = process(True, [tree], out, data(32), existing="resume")[1]
    assert states(results) == ["failed"] * 6 and "overwrite=True" in results[0][4]
    (out / "photos/zero.enc").write_bytes(b"something else")
    results = process(True, [tree], out, key, existing="resume")[1]
    assert states(results) == ["failed"] + ["up to date"] * 5
    assert states(process(True, [tree], out, key, existing="replace")[1]) == ["written"] * 6
    # A change of the content is detected even if the length and the modification time stay the same.
    before = (tree / "a/one").stat()
    time.sleep(0.02)
    (tree / "a/one").write_bytes(b"3")
    os.utime(tree / "a/one", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert states(process(True, [tree], out, key, existing="resume")[1]) == ["up to date"] * 5 + ["written"]
    back = tmp_path / "back"
    process(False, [out / "photos"], back, key)
    assert states(process(False, [out / "photos"], back, key, existing="resume")[1]) == ["up to date"] * 6
    os.utime(back / "photos/a/one")
    assert states(process(False, [out / "photos"], back, key, existing="resume")[1]) == ["failed"] + ["up to date"] * 5


def test_outputs_without_input_are_listed(tree, tmp_path, key):
    out = tmp_path / "out"
    process(True, [tree], out, key)
    (tree / "a/b/long").unlink()
    (tree / "zero").unlink()
    for existing in ("resume", "replace"):
        plan, results = process(True, [tree], out, key, existing=existing)
        assert sorted(plan.without_input()) == ["photos/a/b/long.enc", "photos/zero.enc"] and len(results) == 4
    plan, _ = process(False, [out / "photos"], tmp_path / "back", key)
    assert plan.without_input() == []


def test_plans_that_are_refused(tree, tmp_path, key):
    def plan(inputs, out=tmp_path / "out", encrypts=True):
        return NativePlan(encrypts, [str(path) for path in inputs], str(out), "refuse", False)

    with pytest.raises(FileNotFoundError, match="nothing"):
        plan([tmp_path / "nothing"])
    other = tmp_path / "other" / "photos"
    other.mkdir(parents=True)
    (other / "zero").write_bytes(b"")
    with pytest.raises(ValueError, match="would both be written to"):
        plan([tree, other])
    with pytest.raises(ValueError, match="is the output folder"):
        plan([tree], tree)
    with pytest.raises(ValueError, match="does not end in .enc"):
        plan([tree / "zero"], encrypts=False)
    with pytest.raises(ValueError, match="there is no file to encrypt in .*/empty"):
        plan([tree / "empty"])
    with pytest.raises(ValueError, match="there is no file whose name ends in .enc in .*/a'"):
        plan([tree / "a"], encrypts=False)
    with pytest.raises(OSError, match="is not a folder"):
        plan([tree], tree / "zero")
    assert not (tmp_path / "out").exists()


def test_an_output_folder_in_the_input_is_no_input(tree, key):
    out = tree / "out"
    _, first = process(True, [tree], out, key)
    plan, second = process(True, [tree], out, key, existing="resume")
    assert states(second) == ["up to date"] * len(first) == ["up to date"] * 6
    assert (str(out), "the output folder") in plan.skipped()


def test_failures_concern_single_files(tree, tmp_path, key):
    out, back = tmp_path / "out", tmp_path / "back"
    process(True, [tree], out, key, context=b"c")
    commitments = {str(path.relative_to(out)): path.read_bytes()[24:56] for path in out.rglob("*.enc")}
    os.truncate(out / "photos/a/b/long.enc", 60_000)
    os.truncate(out / "photos/zero.enc", 10)
    damaged = bytearray((out / "photos/a/b/chunk.enc").read_bytes())
    damaged[5000] ^= 1
    (out / "photos/a/b/chunk.enc").write_bytes(damaged)
    _, results = process(False, [out], back, key, context=b"c")
    assert states(results) == ["not authentic"] * 3 + ["written"] * 3
    assert all(error and key.hex() not in error for state, _, _, _, error in results if state != "written")
    assert not (back / "out/photos/zero").exists()
    assert not [path for path in back.rglob("*") if path.is_file() and path.name.startswith(".")]
    # All files fail with a wrong key, and with a wrong context.
    for wrong in [dict(key=data(32), context=b"c"), dict(key=key, context=b"d")]:
        assert states(process(False, [out], tmp_path / "none", **wrong)[1]) == ["not authentic"] * 6
    # Two encrypted files are exchanged. The exchange is detected only if the expected commitments are given.
    a, b = out / "photos/a/one.enc", out / "photos/x.enc.enc"
    one, other = a.read_bytes(), b.read_bytes()
    a.write_bytes(other)
    b.write_bytes(one)
    assert states(process(False, [out], tmp_path / "exchanged", key, context=b"c")[1]).count("written") == 3
    _, results = process(False, [out], tmp_path / "noticed", key, context=b"c", expected=commitments)
    assert states(results).count("written") == 1 and any("manifest lists" in (result[4] or "") for result in results)


def test_files_that_cannot_be_read_or_written(tree, tmp_path, key):
    out = tmp_path / "out"
    plan = NativePlan(True, [str(tree)], str(out), "refuse", False)
    plan.create_folders()
    groups = NativeGroups(True, key, b"", str(out), False, False)
    # The plan has been made. Now the files change.
    (tree / "zero").unlink()
    (tree / "a/one").unlink()
    (tree / "a/one").symlink_to("/etc/passwd")
    results = dict(zip((file[1] for file in plan.files()), groups.process(plan.files())))
    assert results["zero"][0] == "failed" and "No such file" in results["zero"][4]
    assert "symbolic link" in results["a/one"][4]
    assert states(results.values()) == ["failed"] * 2 + ["written"] * 4
    # A file that was encrypted with a passphrase fails with an error that mentions the passphrase, not the
    # key.
    lockstep.encrypt_file(tree / "a/b/chunk", tmp_path / "p.enc", passphrase="a passphrase")
    _, [result] = process(False, [tmp_path / "p.enc"], tmp_path / "back", key)
    assert result[0] == "failed" and "passphrase" in result[4]


def test_abandoned_temporary_files_are_removed(tree, tmp_path, key):
    """The temporary file of a process that was killed is removed. The temporary files of running processes are kept."""
    code = """
        import os, signal, sys, lockstep
        file = lockstep.open(sys.argv[1], "wb", key=bytes(range(32)))
        file.write(bytes(1 << 20))
        print("ready", flush=True)
        if sys.argv[2] == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        sys.stdin.read()
    """
    out = tmp_path / "out"
    plan, _ = process(True, [tree], out, key)
    count = len(files_below(out))
    run_python(code, out / "photos/dead", "dies")
    assert len(files_below(out)) == count, "a file without a name does not remain"
    named = {"LOCKSTEP_TEST_NAMED_FILES": "1"}
    run_python(code, out / "photos/dead", "dies", environment=named)
    assert len(files_below(out)) == count + 1
    script = tmp_path / "script.py"
    script.write_text("\n".join(line[8:] for line in code.splitlines()))
    with started(
        [sys.executable, script, out / "photos/alive", "lives"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **named},
    ) as alive:
        assert alive.stdout.readline() == b"ready\n" and len(files_below(out)) == count + 2
        for path in out.rglob(".lockstep-*.tmp"):
            os.utime(path, (0, time.time() - 4000))
        plan.remove_abandoned()
        assert len(files_below(out)) == count + 1
        alive.communicate(b"", timeout=60)
    assert len(files_below(out)) == count


def entries(count):
    lines = [_manifest.line(f"f{i}", "written", i, i + 72, bytes([i]) * 32, None) for i in range(count)]
    return [(f"f{i}", line) for i, line in enumerate(lines)]


def test_manifests_are_complete_and_sorted(tmp_path):
    path = str(tmp_path / "m")
    journal = _manifest.Journal(path, "encrypt", False)
    journal.add(reversed(entries(5)))
    journal.add([("bad", _manifest.line("bad", "failed", 0, 0, None, "why"))])
    assert not os.path.exists(path)
    journal.finish(str(tmp_path), {f"f{i}" for i in range(5)} | {"bad"})
    found = _manifest.read(path)
    assert list(found) == [f"f{i}" for i in range(5)]
    assert found["f3"] == _manifest.Entry("done", 3, 75, bytes([3]) * 32)
    assert os.listdir(tmp_path) == ["m"]
    with pytest.raises(FileExistsError, match="resume=True"):
        _manifest.Journal(path, "encrypt", False)
    with pytest.raises(ValueError, match="'encrypt', not 'decrypt'"):
        _manifest.Journal(path, "decrypt", True)
    # The journal of a later run lists the outputs of this run and the outputs of earlier runs that still
    # exist.
    (tmp_path / "f1").touch()
    journal = _manifest.Journal(path, "encrypt", True)
    journal.add([("new", _manifest.line("new", "written", 1, 73, bytes(32), None))])
    journal.finish(str(tmp_path), {"new"})
    assert list(_manifest.read(path)) == ["f1", "new"]


def test_a_manifest_continues_after_a_killed_program(tmp_path):
    path = str(tmp_path / "m")
    journal = _manifest.Journal(path, "encrypt", False)
    journal.add(entries(3))
    journal.close()
    part = tmp_path / "m.part"
    part.write_text(part.read_text()[:-20])
    with pytest.raises(FileExistsError, match="was stopped"):
        _manifest.Journal(path, "encrypt", False)
    journal = _manifest.Journal(path, "encrypt", True)
    with pytest.raises(BlockingIOError, match="another program"):
        _manifest.Journal(path, "encrypt", True)
    journal.add(entries(4)[3:])
    journal.finish(str(tmp_path), {f"f{i}" for i in range(4)})
    # The last line of the manifest was cut off, so its file is missing.
    assert list(_manifest.read(path)) == ["f0", "f1", "f3"]


@pytest.mark.parametrize("text", ["", "x", "{}", '{"format": "other"}', "[]", '{"format": "lockstep.files/v1"}\nx\n'])
def test_files_that_are_no_manifests(tmp_path, text):
    (tmp_path / "m").write_text(text)
    with pytest.raises(ValueError, match="manifest|not the line"):
        _manifest.read(tmp_path / "m")


def test_ray_is_imported_only_on_request():
    code = """
        import sys
        sys.modules["ray"] = None       # as if it were not installed
        import lockstep
        try:
            import lockstep.ray
        except ImportError as error:
            print(error)
    """
    done = run_python(code)
    assert done.stdout == "lockstep.ray needs Ray, which is not installed: pip install 'ray[data]'\n", done.stderr
