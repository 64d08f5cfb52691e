"""Tests of the documentation in the package: the examples in docstrings run, and tools that read annotations work."""

import ast
import doctest
import importlib
import inspect
import io
import os
import pathlib
import pkgutil
import typing

import pytest

import lockstep
from lockstep import aead, hazmat, tensor

STUB = pathlib.Path(lockstep.__file__).with_name("_native.pyi")
# These modules need PyTorch or Ray, which are not installed for these tests.
OTHER_PACKAGES = ("lockstep.ray", "lockstep.torch", "lockstep._checkpoint", "lockstep.safetensors.torch")
# Two modules are left out: the import of `__main__` ends the process, and `_lab` adds simulated devices.
MODULES = [
    info.name
    for info in pkgutil.walk_packages(lockstep.__path__, "lockstep.", onerror=lambda name: None)
    if not info.name.startswith(OTHER_PACKAGES) and info.name not in ("lockstep.__main__", "lockstep._lab")
]


def stub_docstrings():
    """The names and docstrings of the public parts of the stub. `_Aead` is included, because its subclasses inherit its members."""
    # These functions are written in Python and call native functions of the same names. They are tested below.
    in_python = {"encrypt_file", "decrypt_file", "devices", "selftest"}
    public = {*lockstep.__all__, *aead.__all__, *hazmat.__all__, *tensor.__all__, "_Aead"} - in_python
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if getattr(node, "name", None) not in public:
            continue
        if node.name != "_Aead":
            yield node.name, ast.get_docstring(node)
        seen = set()
        for member in node.body if isinstance(node, ast.ClassDef) else ():
            name = getattr(member, "name", "_")
            # Properties are skipped, because the docstring of the class describes them. Of several overloads, only the first is
            # used, which has the docstring of the method.
            if not name.startswith("_") and name not in seen and not is_property(member):
                seen.add(name)
                yield f"{node.name}.{name}", ast.get_docstring(member)


def is_property(member):
    return any(isinstance(one, ast.Name) and one.id == "property" for one in member.decorator_list)


def run_examples(name, text):
    names = {"lockstep": lockstep, "hazmat": hazmat, "tensor": tensor, "aead": aead, "os": os, **vars(aead)}
    test = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
    report = io.StringIO()
    runner = doctest.DocTestRunner()
    runner.run(test, out=report.write, clear_globs=False)
    assert runner.summarize(verbose=False).failed == 0, report.getvalue()
    return len(test.examples)


@pytest.mark.parametrize(("name", "text"), list(stub_docstrings()), ids=lambda value: value if " " not in str(value) else "")
def test_the_stub_has_examples(name, text, tmp_path, monkeypatch, request):
    if name.startswith("DeviceArray"):
        request.getfixturevalue("emulator")
    monkeypatch.chdir(tmp_path)
    assert text, "no docstring"
    assert run_examples(name, text) > 0, "no example"


def test_the_stub_has_docstrings():
    assert len(list(stub_docstrings())) > 30


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("lockstep._devices", {"Device", "Selection", "SelfTest", "devices", "selftest", "use"}),
        ("lockstep._files", {"open", "encrypt_file", "decrypt_file"}),
        ("lockstep.fsspec", {"LockstepFileSystem"}),
    ],
)
def test_examples_of_modules(name, expected, tmp_path, monkeypatch):
    """The members of a module that must have an example have one, and it runs. No other member has an example."""
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    members = [one for one in vars(module).values() if getattr(one, "__module__", None) in (name, "lockstep") and one.__doc__]
    with_examples = {one.__name__ for one in members if ">>>" in one.__doc__}
    assert with_examples == expected
    for one in members:
        # The examples may use only the name `lockstep`. The example of the file system may also use the names of its module.
        names = {"lockstep": lockstep} | (vars(module) if name == "lockstep.fsspec" else {})
        test = doctest.DocTestParser().get_doctest(one.__doc__, dict(names), one.__name__, None, 0)
        assert doctest.DocTestRunner().run(test, clear_globs=False).failed == 0


@pytest.mark.parametrize("module", MODULES)
def test_annotations_can_be_evaluated(module):
    module = importlib.import_module(module)
    for one in vars(module).values():
        if getattr(one, "__module__", None) not in (module.__name__, "lockstep"):
            continue
        if inspect.isfunction(one):
            typing.get_type_hints(one)
        elif inspect.isclass(one):
            typing.get_type_hints(one)
            for member in vars(one).values():
                member = member.fget if isinstance(member, property) else inspect.unwrap(getattr(member, "__func__", member))
                if inspect.isfunction(member):
                    typing.get_type_hints(member)


def test_annotations_name_the_types_of_arguments():
    hints = typing.get_type_hints(lockstep.open)
    assert hints["key"] == typing.Optional[lockstep._types.Buffer | lockstep._types.Path]
    assert str(inspect.signature(lockstep.encrypt_file)).startswith("(source:")
