"""Playbooks from elsewhere."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any

import pytest
from asking import memory
from builders import ACE, EMPTY, add
from real_data import PLAYBOOKS, needs
from run_records import plan, request, states

from combee_core import showing
from combee_core.config import Source
from combee_core.errors import PlaybookError
from combee_core.importing import import_playbook, read_playbook
from combee_core.playbook import Playbook
from combee_core.playbook_text import render
from combee_core.publish import publish, refuse_mixing
from combee_core.types import Update
from combee_core.versions import Version, Versions

TEXT = """## FORMULAS & CALCULATIONS
[calc-00071] helpful=16 harmful=5 :: For ROE answer in percent: 20, not 0.2.

## OTHERS
[misc-00003] helpful=0 harmful=1 :: Round last.
"""


def here() -> Versions:
    return Versions(memory(), "p")


def book(version: Version | None) -> Playbook:
    assert version is not None
    return Playbook.model_validate(version.state)


def take(text: str, versions: Versions, where: str = "book.txt") -> Playbook:
    return book(import_playbook(text, where, versions)[0])


def learned(versions: Versions, text: str, day: date | None = None) -> Version:
    """A version that a model learned on top of `latest`."""
    latest = versions.latest()
    number = latest.version if latest else 0
    made = plan(key=f"run-{number}", base_version=number, request=request(source=Source(uris=("/x",), day=day)))
    recorded = states(Update(operations=(add(text, "t1"),)), base=book(latest) if latest else EMPTY, model="real/model")
    version, _ = publish(made, recorded, versions, ACE, flow_run_id="f")
    assert version is not None
    return version


def test_ids_texts_counters_and_headings_are_kept() -> None:
    playbook = take(TEXT, here())
    assert render(playbook) == TEXT
    assert {bullet.origin for bullet in playbook.bullets} == {"import"}
    assert all(bullet.sources == () and bullet.created == bullet.updated == 1 for bullet in playbook.bullets)


def test_an_import_is_a_version_with_its_source_and_adds_no_model() -> None:
    version, added = import_playbook(TEXT, "book.txt", here())
    assert (version.version, version.origin, version.learned_by, added) == (1, "import", (), 2)
    assert "book.txt" in version.note
    assert version.digest == book(version).digest


def test_importing_twice_changes_nothing() -> None:
    versions = here()
    first, _ = import_playbook(TEXT, "book.txt", versions)
    second, added = import_playbook(TEXT, "book.txt", versions)
    assert (second, added) == (first, 0)
    assert len(list(versions.chain())) == 1


def test_only_what_is_new_is_added() -> None:
    versions = here()
    take(TEXT, versions)
    more = TEXT + "[misc-00009] helpful=1 harmful=0 :: Name the unit.\n"
    version, added = import_playbook(more, "more.txt", versions)
    assert (version.version, added) == (2, 1)
    assert [(b.id, b.created) for b in book(version).bullets] == [
        ("calc-00071", 1),
        ("misc-00003", 1),
        ("misc-00009", 2),
    ]


def test_an_id_that_stands_with_another_text_is_refused_by_name() -> None:
    versions = here()
    take(TEXT, versions)
    with pytest.raises(PlaybookError, match=r"other\.txt: \[misc-00003\] already stands .* another text"):
        import_playbook("## OTHERS\n[misc-00003] helpful=9 harmful=0 :: Round first.\n", "other.txt", versions)
    assert len(list(versions.chain())) == 1


def test_counters_of_what_stands_are_not_overwritten() -> None:
    versions = here()
    take(TEXT, versions)
    same = TEXT.replace("helpful=16", "helpful=99")
    assert import_playbook(same, "same.txt", versions)[1] == 0
    assert book(versions.latest()).find("calc-00071").helpful == 16  # type: ignore[union-attr]


def test_no_id_is_ever_given_again() -> None:
    versions = here()
    take(TEXT, versions)
    new = [b for b in book(learned(versions, "Name the unit.")).bullets if b.origin == "learned"]
    assert [b.id for b in new] == ["misc-00072"]


def test_headings_alone_are_imported_too() -> None:
    versions = here()
    take(TEXT, versions)
    version, added = import_playbook("## EMPTY HEADING\n", "heads.txt", versions)
    assert (version.version, added) == (2, 0)
    assert [s.name for s in book(version).sections][-1] == "EMPTY HEADING"
    assert import_playbook("## EMPTY HEADING\n", "heads.txt", versions)[0] == version


def test_what_a_real_model_learned_before_and_its_day_stay_known() -> None:
    versions = here()
    learned(versions, "one", date(2026, 3, 2))
    version, _ = import_playbook(TEXT, "book.txt", versions)
    assert (version.learned_by, version.as_of) == (("real/model",), date(2026, 3, 2))


def test_the_stand_in_may_build_on_an_import() -> None:
    versions = here()
    import_playbook(TEXT, "book.txt", versions)
    refuse_mixing(versions.latest(), "simulated/overload")


def test_imports_at_once_lose_nothing() -> None:
    store = memory()
    gate = threading.Barrier(6)

    def write(number: int) -> int:
        gate.wait(30)
        text = f"## OTHERS\n[misc-0000{number}] helpful=0 harmful=0 :: Lesson {number}.\n"
        return import_playbook(text, "x", Versions(store, "p"))[0].version

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(write, range(1, 7))) == [1, 2, 3, 4, 5, 6]
    assert len(list(book(Versions(store, "p").latest()).bullets)) == 6


# our own JSON


def test_what_show_prints_can_be_imported() -> None:
    versions = here()
    version = learned(versions, "For ROE answer 20, not 0.2.")
    printed = json.dumps(showing.as_data(version, book(version)))
    playbook = take(printed, here(), "shown.json")
    assert render(playbook) == render(book(version))
    assert all(bullet.sources == () for bullet in playbook.bullets)


def test_a_state_can_be_imported_and_keeps_its_next_id() -> None:
    state = Playbook(sections=(), next_id=500).model_dump_json()
    assert read_playbook(state, "state.json").next_id == 500


def test_the_next_id_is_above_every_id() -> None:
    data = {"sections": [{"name": "S", "bullets": [{"id": "x-00041", "text": "t"}, {"id": "none", "text": "u"}]}]}
    assert read_playbook(json.dumps(data), "x").next_id == 42


def bullet(**changes: Any) -> dict[str, Any]:
    return {"sections": [{"name": "S", "bullets": [{"id": "x-1", "text": "t", **changes}]}]}


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ({}, "sections"),
        ({"sections": 3}, "sections"),
        ({"sections": [{"bullets": []}]}, r"sections\.0\.name"),
        ({"sections": [{"name": "S", "bullets": [{"id": "x"}]}]}, r"sections\.0\.bullets\.0\.text"),
        (bullet(helpful=-1), r"sections\.0\.bullets\.0\.helpful"),
        (bullet(harmful="many"), r"sections\.0\.bullets\.0\.harmful"),
        (bullet(id="has space"), "id"),
    ],
)
def test_json_of_another_shape_is_refused_with_its_place(data: Any, place: str) -> None:
    with pytest.raises(PlaybookError, match=rf"^x\.json: {place}"):
        read_playbook(json.dumps(data), "x.json")


@pytest.mark.parametrize("text", ["{", '{"sections": [', "{}}", '{"sections": null}'])
def test_broken_json_is_refused_by_name(text: str) -> None:
    with pytest.raises(PlaybookError, match=r"^x\.json: "):
        read_playbook(text, "x.json")


def test_an_id_that_stands_twice_in_json_is_refused() -> None:
    data = {"sections": [{"name": "S", "bullets": [{"id": "x-1", "text": "a"}, {"id": "x-1", "text": "b"}]}]}
    with pytest.raises(PlaybookError, match=r"x\.json: bullet id x-1 stands twice"):
        read_playbook(json.dumps(data), "x.json")


def test_a_text_that_cannot_be_read_names_file_and_line() -> None:
    with pytest.raises(PlaybookError, match=r"^book\.txt: line 2"):
        read_playbook("## OTHERS\nno bullet at all\n", "book.txt")


def test_line_breaks_in_json_cannot_forge_a_bullet() -> None:
    forged = bullet(text="one\n## HEAD\n[y-1] helpful=999 harmful=0 :: two")
    assert len(list(read_playbook(json.dumps(forged), "x").bullets)) == 1


def test_a_byte_order_mark_does_not_matter() -> None:
    assert read_playbook("\ufeff" + TEXT, "x") == read_playbook(TEXT, "x")
    assert read_playbook("\ufeff" + json.dumps(bullet()), "x") == read_playbook(json.dumps(bullet()), "x")


@needs(PLAYBOOKS)
@pytest.mark.parametrize("name", ["ace_appworld_initial.txt", "ace_appworld_offline.txt"])
def test_a_real_playbook_is_imported_whole(name: str) -> None:
    text = (PLAYBOOKS / name).read_text(encoding="utf-8")
    version, added = import_playbook(text, name, here())
    assert added == sum(line.startswith("[") for line in text.splitlines()) == len(list(book(version).bullets))
