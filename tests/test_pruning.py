"""What a store forgets: nothing young, nothing that `why` needs, and never in the hands of a live run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import pytest
from aged_store import BEFORE, NOW, Calendar
from hypothesis import given
from hypothesis import strategies as st
from run_records import DAY, request

from combee_core.adapters.memory_store import MemoryStore
from combee_core.backlog import Entry, Shelf, drop
from combee_core.cli import main
from combee_core.config import DateRange
from combee_core.errors import StoreError
from combee_core.nights import accomplish, undertake
from combee_core.playbook import Playbook
from combee_core.pruning import Gc, Pruned
from combee_core.runs import Run
from combee_core.saving import write_record
from combee_core.showing import explain
from combee_core.versions import Versions


def gone(found: Pruned) -> dict[str, int]:
    return {kind: count for kind, count in found.objects.items() if count}


def test_old_answers_and_task_results_go_and_young_ones_stay() -> None:
    its = Calendar()
    its.put(31, "answers/ab/ab1.json", "answers/ab/ab1.rejected-1.json", "results/reflect/x", "results/" + "f" * 32)
    its.put(31, "embeddings/e1.json", "probe/left-by-a-kill")
    its.put(29, "answers/ab/ab2.json", "results/reflect/y")
    found = its.gc()
    assert its.keys == ["answers/ab/ab2.json", "results/reflect/y"]
    assert gone(found) == {"saved answers": 2, "saved embeddings": 1, "task results": 2, "leftovers of probes": 1}
    assert found.bytes["saved answers"] == 10


def test_a_dry_run_counts_the_same_and_deletes_nothing() -> None:
    its = Calendar()
    its.night(50, "a" * 20, "one")
    its.run(40, "finished")
    its.put(40, "answers/ab/ab1.json", "playbooks/p/versions/00000009-aaaaaaaaaaaa.json")
    before = its.keys
    counted = its.gc(dry=True)
    assert its.keys == before
    assert its.gc() == counted
    assert len(its.keys) < len(before)


def test_versions_that_latest_leads_back_to_stay_with_the_runs_that_made_them_however_old() -> None:
    its = Calendar()
    its.night(400, "a" * 20, "one")
    its.night(300, "b" * 20, "two")
    before = its.keys
    assert gone(its.gc()) == {}
    assert its.keys == before
    versions = Versions(its.store, "p")
    latest = versions.latest()
    assert latest is not None
    assert [v.version for v in versions.chain()] == [2, 1]
    book = Playbook.model_validate(latest.state)
    found = explain(versions, latest, book, next(iter(book.bullets)).id)
    assert found["changes"][0]["run"] == "a" * 20
    assert Run(its.store, "a" * 20).plan().key == "a" * 20
    assert Run(its.store, "a" * 20).state(1) is not None


def test_a_version_that_lost_its_race_goes_with_the_run_that_made_it() -> None:
    its = Calendar()
    its.night(60, "a" * 20, "one")
    first = its.store.read("playbooks/p/latest.json")
    its.night(50, "b" * 20, "lost")
    moved = its.store.read("playbooks/p/latest.json")
    assert first is not None
    assert moved is not None
    its.store.replace("playbooks/p/latest.json", first.data, moved.tag)
    assert gone(its.gc()) == {"orphan versions": 1, "records of finished runs": 3}
    assert [v.version for v in Versions(its.store, "p").chain()] == [1]
    assert [k for k in its.keys if k.startswith("runs/")] == sorted(
        f"runs/{'a' * 20}/{name}" for name in ("plan.json", "result.json", "state-0001.json")
    )


def test_a_young_version_that_latest_does_not_reach_may_be_about_to_be_published() -> None:
    its = Calendar()
    its.put(0.1, "playbooks/p/versions/00000001-aaaaaaaaaaaa.json")
    its.gc()
    assert its.keys == ["playbooks/p/versions/00000001-aaaaaaaaaaaa.json"]


def test_a_finished_run_that_made_no_version_goes_after_its_time() -> None:
    its = Calendar()
    its.run(31, "old")
    young = its.run(29, "young")
    assert gone(its.gc()) == {"records of finished runs": 6, "flow run pointers": 1}
    assert its.keys == sorted(["flow-runs/f-young", *young])


def test_an_unfinished_run_keeps_every_answer_since_its_plan_for_as_long_as_it_is_worked_on() -> None:
    its = Calendar()
    its.put(90, "answers/00/before-its-plan.json")
    its.run(60, "open", finished=False)
    its.put(59, "answers/00/its-own.json", "results/curate/its-own")
    its.put(2, "runs/open/receipts/of-a-rerun.jsonl")
    its.gc()
    assert {"answers/00/its-own.json", "results/curate/its-own", "runs/open/plan.json"} <= set(its.keys)
    assert "flow-runs/f-open" in its.keys
    assert "answers/00/before-its-plan.json" not in its.keys


def test_the_nights_and_pointers_of_flow_runs_that_can_be_gone_on_with_stay() -> None:
    its = Calendar()
    its.run(60, "open", finished=False)
    its.put(60, "runs/open/flow-runs/night-1", "flow-runs/night-1.2026-10-01", "flow-runs/night-1.backlog")
    its.put(60, "nights/night-1.json", "nights/night-1/2026-10-01.json")
    its.put(60, "flow-runs/night-2.2026-10-01", "nights/night-2.json", "nights/night-2/2026-10-01.json")
    its.put(60, "nights/night-3.json", "nights/night-3/2026-10-01.json")
    its.put(2, "runs/open/state-0003.json", "nights/night-3/2026-10-02.json")
    before = its.keys
    assert gone(its.gc()) == {"flow run pointers": 1, "nights": 2}
    assert {key for key in before if key not in its.keys} == {key for key in before if "night-2" in key}


def test_marks_of_attempts_go_with_their_runs_and_no_sooner() -> None:
    its = Calendar()
    its.night(60, "a" * 20, "one")
    its.run(60, "held")
    its.run(60, "old")
    marks = {run: f"history/my-own/20260101T000000000000-{run}" for run in ("a" * 20, "held", "old", "gone-before")}
    its.put(60, *marks.values())
    its.put(1, "history/p/20261129T000000000000-beginning")
    with its.store.lease("runs/held/owner", "flow run blue-fox"):
        assert gone(its.gc())["marks of past attempts"] == 2
    assert [key for key in its.keys if key.startswith("history/")] == sorted(
        [marks["a" * 20], marks["held"], "history/p/20261129T000000000000-beginning"]
    )


def test_a_backfill_that_was_accomplished_is_not_taken_for_the_next_one() -> None:
    its, days = Calendar(60), DateRange(first=date(2026, 10, 1), last=date(2026, 10, 2))
    first = undertake(its.store, request(source=DAY), days, force=True, base=None).name
    accomplish(its.store, first)
    its.gc()
    assert undertake(its.store, request(source=DAY), days, force=True, base=None).name != first


def test_an_unfinished_run_that_nobody_touched_for_so_long_goes_and_is_named_as_that() -> None:
    its = Calendar()
    its.run(31, "given-up", finished=False)
    assert gone(its.gc()) == {"records of runs that never finished": 5, "flow run pointers": 1}
    assert its.keys == []


def test_nothing_is_deleted_under_a_live_lease() -> None:
    its = Calendar()
    kept = its.run(31, "held", finished=False)
    with its.store.lease("runs/held/owner", "flow run blue-fox"):
        found = its.gc()
        assert found.held == ("held",)
    assert set(kept) <= set(its.keys)
    assert its.gc().held == ()
    assert its.keys == []


def test_a_lease_that_a_dead_process_left_keeps_nothing() -> None:
    its = Calendar()
    its.run(31, "dead", finished=False)
    with its.store.lease("runs/dead/owner", "flow run blue-fox"):
        hold = its.store.read("runs/dead/owner")
    assert hold is not None
    silent = hold.data.replace(b'"host":"', b'"host":"elsewhere-')
    beat = silent.index(b'"beat":') + 7
    silent = silent[:beat] + b"0.0" + silent[silent.index(b",", beat) :]
    its.put(1, "runs/dead/owner", data=silent)
    assert its.gc().held == ()
    assert its.keys == []


def test_days_backlog_measurements_and_what_is_not_ours_stay() -> None:
    its = Calendar()
    its.put(999, "days/p/x/2024-01-01.json", "backlog/p/00.json", "measurements/m.json", "preflight/store", "else/x")
    before = its.keys
    assert gone(its.gc()) == {}
    assert its.keys == before


@pytest.mark.parametrize("finished", [True, False])
def test_the_runs_that_hold_what_waits_in_a_backlog_stay_until_it_is_settled(finished: bool) -> None:
    its = Calendar()
    waits = [*its.run(60, "holder", finished=finished), *its.run(50, "filer", finished=finished)]
    its.run(60, "other", finished=finished)
    entry = Entry(trace_id="t", digest="d", fate="failed", reason="x", run="filer", place=waits[1])
    its.put(60, f"backlog/q/{entry.name[:2]}.json", data=write_record(Shelf(entries={entry.name: entry})))
    its.gc()
    assert {key for key in its.keys if key.startswith("runs/")} == set(waits)
    drop(its.store, "q", [entry])
    its.gc()
    assert [key for key in its.keys if key.startswith("runs/")] == []


def test_a_damaged_chain_stops_it_before_anything_is_deleted() -> None:
    its = Calendar()
    its.night(60, "a" * 20, "one")
    its.put(60, "answers/00/x.json")
    (key,) = [k for k in its.keys if "/versions/" in k]
    its.store.delete(key)
    before = its.keys
    with pytest.raises(StoreError, match="is missing"):
        its.gc()
    assert its.keys == before


class Dying(MemoryStore):
    """A store whose process is killed after so many deletions."""

    left = 0

    def delete(self, key: str) -> None:
        if not key.endswith("owner"):
            if self.left == 0:
                raise KeyboardInterrupt
            self.left -= 1
        super().delete(key)


@pytest.mark.parametrize("kill", range(8))
def test_a_kill_in_the_middle_leaves_runs_whole_and_the_next_sweep_does_the_rest(kill: int) -> None:
    its = Calendar()
    its.run(40, "one")
    its.run(40, "two", finished=False)
    dying = Dying(its.store.uri.removeprefix("memory://"), lambda: NOW)
    dying.left = kill
    with pytest.raises(KeyboardInterrupt):
        Gc(dying, BEFORE).sweep()
    for run in ("one", "two"):
        left = {key.split("/", 2)[2] for key in its.keys if key.startswith(f"runs/{run}/")}
        # No state without the one before it, no record without a plan, no finished run without its result.
        assert "state-0002.json" not in left or "state-0001.json" in left
        assert not left or "plan.json" in left
        assert run != "one" or not left - {"plan.json"} or "result.json" in left
    its.gc()
    assert its.keys == []


AGED = st.tuples(
    st.sampled_from(
        [
            "answers/00/",
            "results/",
            "runs/a/",
            "runs/b/",
            "flow-runs/",
            "playbooks/p/versions/",
            "days/",
            "nights/",
            "history/p/1-",
        ]
    ),
    st.sampled_from(["plan.json", "result.json", "state-0001.json", "flow-runs/x", "a", "x", "y"]),
    st.integers(0, 60),
)


@given(st.lists(AGED, max_size=30, unique_by=lambda one: one[:2]))
def test_whatever_lies_there_nothing_young_goes_and_a_second_sweep_finds_nothing(
    objects: Sequence[tuple[str, str, int]],
) -> None:
    its = Calendar()
    for folder, name, days in objects:
        its.put(days, folder + name)
    counted = its.gc(dry=True)
    assert its.gc() == counted
    left = set(its.keys)
    assert {folder + name for folder, name, days in objects if days < 30} <= left
    assert sum(counted.objects.values()) == len(objects) - len(left)
    assert gone(its.gc()) == {}
    assert set(its.keys) == left


def test_less_than_a_day_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gc", "--keep-days", "0", "--store", "memory://x"]) == 2
    assert "at least 1" in capsys.readouterr().err
