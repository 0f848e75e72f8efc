"""Playbooks explained."""

from __future__ import annotations

from datetime import date

import pytest
from asking import memory
from builders import ACE, EMPTY, add, change, vote
from run_records import plan, request, states

from combee_core.config import Source
from combee_core.diff import diff
from combee_core.errors import UsageError
from combee_core.importing import import_playbook
from combee_core.playbook import Playbook
from combee_core.playbook_text import render
from combee_core.publish import publish
from combee_core.showing import as_data, difference, explain, explanation
from combee_core.types import Operation, OperationKind, Update
from combee_core.versions import Version, Versions


def book(version: Version | None) -> Playbook:
    assert version is not None
    return Playbook.model_validate(version.state)


def night(versions: Versions, day: int, *ops: Operation, votes: tuple[object, ...] = (), model: str = "m/1") -> Version:
    latest = versions.latest()
    number = latest.version if latest else 0
    source = Source(uris=("/x",), day=date(2026, 3, day))
    made = plan(key=f"run-{number}", base_version=number, request=request(source=source))
    update = Update.model_validate({"operations": ops, "votes": votes})
    recorded = states(update, base=book(latest) if latest else EMPTY, version=number + 1, model=model)
    version, _ = publish(made, recorded, versions, ACE, flow_run_id=f"flow-{day}")
    assert version is not None
    return version


@pytest.fixture
def versions() -> Versions:
    """Two nights: a lesson, then the lesson rewritten by another model and tagged."""
    made = Versions(memory(), "p")
    first = night(made, 1, add("For ROE answer 20.", "t1", "t2"))
    (bullet,) = book(first).bullets
    night(made, 2, change(bullet, "For ROE answer 20, not 0.2.", "t3"), votes=(vote(bullet.id, "t4"),), model="m/2")
    return made


def test_the_data_has_exactly_these_fields(versions: Versions) -> None:
    version = versions.latest()
    assert version
    data = as_data(version, book(version))
    assert list(data) == ["playbook", "version", "digest", "tokens", "sections"]
    assert (data["playbook"], data["version"], data["digest"]) == ("p", 2, version.digest)
    assert data["tokens"] == -(-len(render(book(version)).encode()) // 4)
    (bullet,) = [b for s in data["sections"] for b in s["bullets"]]
    assert bullet == {
        "id": "misc-00001",
        "text": "For ROE answer 20, not 0.2.",
        "helpful": 1,
        "harmful": 0,
        "sources": ["t1", "t2", "t3"],
        "created": 1,
        "updated": 2,
    }


def test_headings_without_bullets_are_shown(versions: Versions) -> None:
    version = versions.latest()
    assert version
    sections = as_data(version, book(version))["sections"]
    assert {"name": "STRATEGIES & INSIGHTS", "bullets": []} in sections


def test_an_imported_bullet_says_so_and_has_no_sources() -> None:
    versions = Versions(memory(), "p")
    import_playbook("## OTHERS\n[misc-00001] helpful=2 harmful=1 :: Round last.\n", "old.txt", versions)
    version = versions.latest()
    assert version
    assert as_data(version, book(version))["sections"] == [
        {
            "name": "OTHERS",
            "bullets": [
                {
                    "id": "misc-00001",
                    "text": "Round last.",
                    "helpful": 2,
                    "harmful": 1,
                    "sources": [],
                    "created": 1,
                    "updated": 1,
                    "origin": "import",
                }
            ],
        }
    ]


def test_why_names_traces_days_calls_runs_and_the_model_of_each_change(versions: Versions) -> None:
    version = versions.latest()
    assert version
    found = explain(versions, version, book(version), "misc-00001")
    first, second = found["changes"]
    assert (first["kind"], first["version"], first["sources"], first["as_of"]) == ("ADD", 1, ["t1", "t2"], "2026-03-01")
    assert (first["models"], first["origin"], first["flow_run_id"]) == (["m/1"], "curate-g01", "flow-1")
    assert (second["kind"], second["before"], second["models"]) == ("UPDATE", "For ROE answer 20.", ["m/2"])
    assert found["votes"] == [{"trace_id": "t4", "tag": "helpful"}]


def test_why_of_a_merged_bullet_knows_what_it_was_merged_from() -> None:
    versions = Versions(memory(), "p")
    one, two = book(night(versions, 1, add("rule one", "t1"), add("rule two", "t2"))).bullets
    join = Operation(kind=OperationKind.MERGE, text="both", bullet_ids=(one.id, two.id), seen=(one.text, two.text))
    version = night(versions, 2, join.model_copy(update={"sources": ("t3",)}))
    lines = "\n".join(explanation(explain(versions, version, book(version), one.id)))
    assert "version 2: MERGE" in lines
    assert "version 1: ADD" in lines
    assert "t1" in lines
    assert "t2" in lines


def test_why_as_lines(versions: Versions) -> None:
    version = versions.latest()
    assert version
    lines = list(explanation(explain(versions, version, book(version), "misc-00001")))
    assert lines[0] == "[misc-00001] helpful=1 harmful=0 :: For ROE answer 20, not 0.2."
    text = "\n".join(lines)
    for part in (
        "version 1: ADD by curate-g01, day 2026-03-01",
        "from traces t1, t2",
        "before: For ROE answer 20.",
        "m/2",
        "flow run flow-2",
        "tagged helpful by t4",
    ):
        assert part in text


def test_why_of_an_imported_bullet_names_the_file() -> None:
    versions = Versions(memory(), "p")
    import_playbook("## OTHERS\n[misc-00001] helpful=0 harmful=0 :: Round last.\n", "old.txt", versions)
    version = versions.latest()
    assert version
    assert "imported from old.txt (version 1)" in "\n".join(
        explanation(explain(versions, version, book(version), "misc-00001"))
    )


def test_why_of_a_bullet_that_is_not_there_is_wrong_use(versions: Versions) -> None:
    version = versions.latest()
    assert version
    with pytest.raises(UsageError, match="playbook p has no bullet misc-00099 in version 2"):
        explain(versions, version, book(version), "misc-00099")


def test_a_difference_as_lines(versions: Versions) -> None:
    old, new = versions.get(1), versions.get(2)
    lines = list(difference(1, 2, diff(book(old), book(new))))
    assert lines == ["version 1 → 2", "~ [misc-00001] For ROE answer 20.", "  → For ROE answer 20, not 0.2."]


def test_added_removed_and_counted_bullets_are_told_apart(versions: Versions) -> None:
    latest = versions.latest()
    (bullet,) = book(latest).bullets
    counted = night(versions, 3, add("Name the unit.", "t5"), votes=(vote(bullet.id, "t6", "harmful"),))
    lines = list(difference(2, 3, diff(book(latest), book(counted))))
    assert any(line.startswith("+ [misc-00002] Name the unit.") for line in lines)
    assert "# [misc-00001] helpful 1 → 1, harmful 0 → 1, sources 3 → 3" in lines
    gone = list(difference(3, 2, diff(book(counted), book(latest))))
    assert "- [misc-00002] Name the unit." in gone


def test_no_difference_says_so(versions: Versions) -> None:
    same = book(versions.latest())
    assert list(difference(2, 2, diff(same, same))) == ["version 2 → 2", "no difference"]
