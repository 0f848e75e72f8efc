"""`combee playbook` in process: it needs no server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from real_data import PLAYBOOKS, needs

from combee_core.cli import main

APPWORLD = PLAYBOOKS / "ace_appworld_offline.txt"
TEXT = """## FORMULAS & CALCULATIONS
[calc-00071] helpful=16 harmful=5 :: For ROE answer in percent: 20, not 0.2.

## OTHERS
[misc-00072] helpful=0 harmful=1 :: Round last.
"""


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with one imported playbook, `desk`."""
    (tmp_path / "desk.txt").write_text(TEXT)
    uri = f"file://{tmp_path}/store"
    assert main(["playbook", "import", str(tmp_path / "desk.txt"), "--playbook", "desk", "--store", uri]) == 0
    return uri


def shown(capsys: pytest.CaptureFixture[str], *args: str) -> Any:
    capsys.readouterr()
    assert main(["playbook", *args, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_show_prints_the_bullets_with_their_sources(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    data = shown(capsys, "show", "desk", "--store", store)
    assert list(data) == ["playbook", "version", "digest", "tokens", "sections"]
    assert data["version"] == 1
    assert data["sections"][0] == {
        "name": "FORMULAS & CALCULATIONS",
        "bullets": [
            {
                "id": "calc-00071",
                "text": "For ROE answer in percent: 20, not 0.2.",
                "helpful": 16,
                "harmful": 5,
                "sources": [],
                "created": 1,
                "updated": 1,
                "origin": "import",
            }
        ],
    }


def test_render_gives_back_what_was_imported(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["playbook", "render", "desk", "--store", store]) == 0
    assert capsys.readouterr().out == TEXT


def test_why_names_the_file_of_an_imported_bullet(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["playbook", "why", "desk", "[calc-00071]", "--store", store]) == 0
    assert "imported from desk.txt" in capsys.readouterr().out


def test_importing_again_adds_nothing_and_an_addition_is_a_new_version(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = shown(capsys, "import", str(tmp_path / "desk.txt"), "--playbook", "desk", "--store", store)
    assert (again["version"], again["imported"]) == (1, 0)
    (tmp_path / "more.txt").write_text("## OTHERS\n[misc-00100] helpful=0 harmful=0 :: Check the sign.\n")
    more = shown(capsys, "import", str(tmp_path / "more.txt"), "--playbook", "desk", "--store", store)
    assert (more["version"], more["imported"]) == (2, 1)
    difference = shown(capsys, "diff", "desk", "--store", store)
    assert (difference["old"], difference["new"]) == (1, 2)
    assert [bullet["id"] for bullet in difference["added"]] == ["misc-00100"]
    assert len(shown(capsys, "show", "desk", "--version", "1", "--store", store)["sections"][1]["bullets"]) == 1


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (("show", "nobody"), "no playbook nobody"),
        (("show", "desk", "--version", "9"), "no version 9"),
        (("why", "desk", "calc-99999"), "no bullet calc-99999"),
        (("show", "../desk"), "playbook name"),
    ],
)
def test_what_is_not_there_is_named_with_exit_2(
    store: str, args: tuple[str, ...], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["playbook", *args, "--store", store]) == 2
    assert word in capsys.readouterr().err


def test_a_bad_line_is_refused_with_its_number(store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.txt").write_text("## OTHERS\n[misc-1] helpful=1 harmful=0 :: fine\nstray words\n")
    capsys.readouterr()
    assert main(["playbook", "import", str(tmp_path / "bad.txt"), "--playbook", "other", "--store", store]) == 2
    assert "bad.txt: line 3" in capsys.readouterr().err


@needs(APPWORLD)
def test_a_real_playbook_keeps_all_its_bullets_and_ids(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = f"file://{tmp_path}/store"
    imported = shown(capsys, "import", str(APPWORLD), "--playbook", "appworld", "--store", store)
    assert imported["imported"] == 318
    sections = shown(capsys, "show", "appworld", "--store", store)["sections"]
    ids = [bullet["id"] for section in sections for bullet in section["bullets"]]
    lines = [line for line in APPWORLD.read_text().splitlines() if line.startswith("[")]
    assert ids == [line[1 : line.index("]")] for line in lines]
    capsys.readouterr()
    assert main(["playbook", "render", "appworld", "--no-counters", "--store", store]) == 0
    rendered = [line for line in capsys.readouterr().out.split("\n") if line.startswith("[")]
    assert rendered == [line.rstrip() for line in lines]
    assert main(["playbook", "why", "appworld", ids[0], "--store", store]) == 0
    assert len(shown(capsys, "diff", "appworld", "--store", store)["added"]) == 318
