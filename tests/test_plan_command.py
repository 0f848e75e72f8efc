"""`combee plan` and `--dry-run` as a user sees them: a table or one JSON object, and nothing done."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from command import ROOT, Combee
from inline_nights import DAY, asked, learn, write_day

from combee_core import backlog
from combee_core.cli import main
from combee_core.records import TraceFate

README = ROOT / "README.md"


def told(capsys: pytest.CaptureFixture[str], *args: object) -> str:
    """What a command prints that ends well."""
    assert main([*map(str, args)]) == 0
    return capsys.readouterr().out


def data(capsys: pytest.CaptureFixture[str], *args: object) -> Any:
    """The one object on its stdout."""
    return json.loads(told(capsys, *args, "--json"))


def plan(folder: Path, *more: object) -> tuple[object, ...]:
    return ("plan", "--store", f"file://{folder}/store", *more)


def rows(out: str) -> dict[str, list[str]]:
    """The table's rows by their first cell."""
    return {line.split()[0]: line.split() for line in out.splitlines() if line[:1].strip()}


# plan


def test_a_rate_is_told_in_three_forms(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = told(capsys, *plan(tmp_path, "--traces-per-day", 100, "--batch-size", 100))
    found = rows(out)
    assert found["sequential"][1:5] == ["1", "100", "≤100", "-"]
    assert found["paper"][1:5] == ["100", "100", "≤10", "≤1"]
    assert found["bounded"][1:4] == ["100", "100", "≤20"]
    assert out.startswith("estimates for a night of 100 traces, model simulated/overload")
    assert "assumed: 100% of the traces teach something" in out
    assert not (tmp_path / "store").exists()


def test_columns_stand_below_each_other(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = told(capsys, *plan(tmp_path, "--traces-per-day", 12_345))
    table = out.splitlines()[2:6]
    ends = {line.index(cell) + len(cell) for line, cell in zip(table[1:], ("12,345",) * 3, strict=True)}
    assert ends == {table[0].index("reflect") + len("reflect")}
    assert all(len(line) <= 130 for line in out.splitlines())


def test_json_holds_every_figure_with_its_bounds(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = data(capsys, *plan(tmp_path, "--traces-per-day", 100, "--batch-size", 100, "--days", 7))
    assert (found["estimated"], found["traces_per_day"], found["days"]) == (True, 100, 7)
    paper = next(form for form in found["forms"] if form["name"] == "paper")
    assert paper["night"]["calls"]["reflect"] == {"at_least": 100, "expected": 100, "at_most": 100}
    assert paper["night"]["calls"]["curate"] == {"at_least": 0, "expected": 10, "at_most": 10}
    assert paper["days"]["calls"]["curate"]["at_most"] == 70
    assert set(paper["night"]["hours"]) == {"expected", "at_least"}
    assert found["assumptions"]


def test_a_night_that_does_not_end_in_time_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    args = plan(tmp_path, "--traces-per-day", 10_000, "--batch-size", 30, "--window", 8)
    out = told(capsys, *args)
    assert "139–157  more than 8 h" in out
    assert "7.1–13.6  perhaps more than 8 h" in out
    assert [form["fits"] for form in data(capsys, *args)["forms"]] == ["no", "perhaps", "perhaps"]


def test_an_unknown_price_is_unknown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    args = plan(tmp_path, "--traces-per-day", 100, "--model", "openai/one-of-our-own")
    assert rows(told(capsys, *args))["paper"][7:9] == ["unknown", "unknown"]
    assert data(capsys, *args)["forms"][0]["night"]["cost"] is None


def test_a_known_price_is_money(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = data(capsys, *plan(tmp_path, "--traces-per-day", 100, "--model", "openai/gpt-4o"))
    night = found["forms"][0]["night"]
    tokens = night["tokens"]
    assert night["cost"] == pytest.approx(2.5e-6 * tokens["input"] + 1e-5 * tokens["output"])


def test_the_size_of_a_trace_can_be_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    small, large = (
        data(capsys, *plan(tmp_path, "--traces-per-day", 100, "--trace-tokens", n))["forms"][1]["night"]["tokens"]
        for n in (1000, 9000)
    )
    assert large["input"] - small["input"] == 100 * 8000


def test_what_earlier_runs_have_shown_is_used_and_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    learn(asked(f"file://{tmp_path}/store", write_day(tmp_path, 20), batch_size=20))
    out = told(capsys, *plan(tmp_path, "--traces-per-day", 100, "--playbook", "p"))
    assert "observed in 1 earlier run: 100% of the traces teach something" in out
    assert "observed" not in told(capsys, *plan(tmp_path, "--traces-per-day", 100, "--playbook", "q"))


@pytest.mark.parametrize("wrong", [("--traces-per-day", "0"), ("--traces-per-day", "many"), ()])
def test_a_rate_is_a_number_above_nothing(wrong: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["plan", *wrong])
    assert ended.value.code == 2


@pytest.mark.parametrize("wrong", [("--window", "0"), ("--batch-size", "0"), ("--tau", "2")])
def test_wrong_use_ends_with_2(capsys: pytest.CaptureFixture[str], tmp_path: Path, wrong: tuple[str, ...]) -> None:
    assert main([*map(str, plan(tmp_path, "--traces-per-day", 5, *wrong))]) == 2
    assert wrong[0] in capsys.readouterr().err


def test_the_readme_shows_what_the_command_prints(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = re.search(r"```console\n\$ combee (plan .*?)\n(.*?)\n…\n```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert shown, "the table is where the test looks for it"
    out = told(capsys, *shlex.split(shown[1]))
    assert [line.rstrip() for line in out.splitlines()][: len(shown[2].splitlines())] == shown[2].splitlines()
    assert "bounded" in shown[2]


# dry runs


def test_a_dry_backfill_tells_each_day_and_all(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for n in range(2):
        write_day(tmp_path / "traces", 20, seed=n, day=DAY + timedelta(days=n))
    args = ("--traces", tmp_path / "traces", "--store", f"file://{tmp_path}/store", "--batch-size", 20, "--dry-run")
    found = rows(told(capsys, "backfill", f"{DAY}..{DAY + timedelta(days=2)}", *args, "--merge", "paper"))
    assert found["2026-03-02"][1:7] == ["20", "1", "-", "20", "≤4", "≤1"]
    assert found["2026-03-04"][-2:] == ["no", "traces"]
    assert found["3"][2:7] == ["40", "2", "-", "40", "≤8"]
    assert not (tmp_path / "store").exists()


def test_a_dry_night_without_a_day_is_yesterdays(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write_day(tmp_path / "traces", 20)
    found = data(capsys, "nightly", "--traces", tmp_path / "traces", "--store", f"file://{tmp_path}/s", "--dry-run")
    (day,) = found["days"]
    assert (day["note"], day["batches"], found["total"]["cost"]) == ("no traces", 0, 0)


def test_a_dry_night_counts_its_own_day(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write_day(tmp_path / "traces", 30)
    where = ("--traces", tmp_path / "traces", "--store", f"file://{tmp_path}/s", "--batch-size", 30)
    found = data(capsys, "nightly", "--day", DAY, *where, "--dry-run")
    (day,) = found["days"]
    assert (day["day"], day["traces"], day["batching"]) == (str(DAY), 30, "batch size 30, as given")
    assert day["calls"]["reflect"]["expected"] == 30
    assert found["dry_run"] is True


def test_a_dry_night_counts_what_it_will_try_again_of_earlier_ones(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    night = learn(asked(f"file://{tmp_path}/store", write_day(tmp_path / "traces", 20), batch_size=20))
    fates = [TraceFate(trace_id=item.id, fate="refused", reason="policy") for item in night.run.plan().items[:3]]
    backlog.file(night.store, night.run.plan(), fates)
    write_day(tmp_path / "traces", 9, seed=1, day=DAY + timedelta(days=1))
    where = ("--traces", tmp_path / "traces", "--store", night.store.uri, "--playbook", "p", "--dry-run")
    command = ("nightly", "--day", DAY + timedelta(days=1), *where)

    own, waiting = data(capsys, *command)["days"]
    assert (own["day"], own["traces"], own["note"]) == ("2026-03-03", 9, "")
    assert (waiting["day"], waiting["traces"], waiting["note"]) == ("backlog", 3, "tried again")
    assert waiting["calls"]["reflect"]["expected"] == 3
    found = rows(told(capsys, *command))
    assert found["backlog"][1:6] == ["3", "1", "-", "3", "≤1"]
    assert found["together"][1:5] == ["12", "2", "-", "12"]

    (whole,) = data(capsys, "nightly", "--day", DAY, *where)["days"]
    assert (whole["day"], whole["traces"]) == ("2026-03-02", 20), "what its day takes up is not counted twice"
    backlog.drop(night.store, "p", list(backlog.entries(night.store, "p")))
    assert [day["day"] for day in data(capsys, *command)["days"]] == ["2026-03-03"]


def test_learning_from_samples_can_be_looked_at_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = data(capsys, "learn", "--samples", "world:30", "--store", f"file://{tmp_path}/s", "--dry-run")
    assert found["total"]["calls"]["rollout"]["expected"] == found["total"]["calls"]["reflect"]["expected"] == 30


def test_neither_prefect_nor_a_server_is_needed(tmp_path: Path) -> None:
    path = write_day(tmp_path, 20)
    script = (
        "import sys\nfrom combee_core.cli import main\n"
        f"main(['learn', {str(path)!r}, '--store', 'file://{tmp_path}/store', '--dry-run', '--json'])\n"
        "print(*sorted(m for m in sys.modules if '.' not in m), file=sys.stderr)"
    )
    environment = {**os.environ, "COMBEE_HOME": str(tmp_path / "home")}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["total"]["traces"] == 20
    assert not {"prefect", "litellm", "scipy", "httpx"} & set(done.stderr.split())
    assert not (tmp_path / "home").exists()
    assert not (tmp_path / "store").exists()


def test_a_backfill_makes_the_calls_that_its_dry_run_has_told(combee: Combee, tmp_path: Path) -> None:
    for n in range(2):
        write_day(tmp_path / "traces", 9, seed=n, day=DAY + timedelta(days=n))
    where = ("--traces", tmp_path / "traces", "--store", f"file://{tmp_path}/store", "--model", "simulated/overload")
    command = ("backfill", f"{DAY}..{DAY + timedelta(days=1)}", *where, "--merge", "paper", "--json")
    told = combee(*command, "--dry-run").json["total"]
    made = combee(*command)
    assert made.code == 0, made.err
    assert made.json["model_calls"] == {stage: count["expected"] for stage, count in told["calls"].items()}
    assert sum(told["tokens"].values()) == pytest.approx(made.json["tokens"]["total"], rel=0.15)
    after = combee(*command, "--dry-run").json
    assert [day["note"] for day in after["days"]] == ["already learned (version 1)", "already learned (version 2)"]
    assert sum(count["expected"] for count in after["total"]["calls"].values()) == 0
