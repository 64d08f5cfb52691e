"""The examples of docs/data.md."""

import pathlib
import re

import pytest

pytest.importorskip("pyarrow")
PAGE = pathlib.Path(__file__).parents[3] / "docs" / "data.md"


def test_the_examples_of_the_page_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    # The examples after this title are tested by tests/cluster.
    text = PAGE.read_text(encoding="utf-8").partition("\n## A cluster\n")[0]
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 6
    names = {"__name__": "examples"}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert "there is no key for column salary" in capsys.readouterr().out
