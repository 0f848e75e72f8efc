"""kill -9 of flow, worker and serve at random points: twenty rounds, each compared with the undisturbed night."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from audited import completed, unaccounted
from command import Combee, kill
from deployed import Deployed, ended, retry, state_of, unless_failed
from disturbed import IN_FLIGHT, Night, running, until
from figures import Figures
from simserver import simulated_server

LATENCY, UUID_LENGTH = 0.2, 36
VICTIMS = ("flow", "worker and its run", "serve and its run", "flow", "worker", "serve")
ROUNDS = [(seed, VICTIMS[seed % len(VICTIMS)]) for seed in range(20)]


@dataclass(frozen=True)
class Calm:
    """What the undisturbed night cost and gave."""

    calls: int
    digest: str


@dataclass(frozen=True)
class Killed:
    """What a kill left: calls made and answers saved by then, and how the night went on."""

    calls: int
    saved: int
    by: str = "nothing, it was done"

    @property
    def in_flight(self) -> int:
        """Calls that were made and whose answers were not saved."""
        return self.calls - self.saved


@dataclass(frozen=True)
class Round:
    """What came of a kill: flow runs that ended as Completed, and those of them that do not account for the traces."""

    seed: int
    victim: str
    when: str
    left: Killed
    repeated: int
    completed: int
    unaccounted: int
    equal: bool

    @property
    def row(self) -> tuple[object, ...]:
        """As it is printed."""
        left, digest = self.left, "equal" if self.equal else "differs"
        calls = (left.calls, left.saved, left.in_flight, self.repeated)
        return self.seed, self.victim, self.when, *calls, left.by, self.completed, self.unaccounted, digest


@pytest.fixture(scope="module")
def calm(combee: Combee, tmp_path_factory: pytest.TempPathFactory) -> Calm:
    """The night without a kill."""
    folder = tmp_path_factory.mktemp("calm")
    with simulated_server(folder, latency=LATENCY) as server:
        night = Night(server, f"file://{folder}/store", folder)
        done = combee(*night.command).json
        assert night.repeated == 0
        return Calm(night.calls, done["digest"])


@pytest.fixture(scope="module")
def rounds(calm: Calm) -> Iterator[list[Round]]:
    """Every round that was made; printed at the end."""
    made: list[Round] = []
    yield made
    columns = ("seed", "killed", "s after call", "calls", "saved", "in flight", "repeated", "went on by")
    title = f"kill -9 at random points; the undisturbed night makes {calm.calls} calls"
    table = Figures(title, *columns, "completed", "unaccounted", "digest")
    for one in made:
        table.add(*one.row)
    figures = {
        "rounds": len(made),
        "equal digests": sum(one.equal for one in made),
        "calls in flight at the kills": sum(one.left.in_flight for one in made),
        "repeated calls": sum(one.repeated for one in made),
        "flow runs Completed": sum(one.completed for one in made),
        "of them with missing accounting": sum(one.unaccounted for one in made),
    }
    table.show("in all: " + ", ".join(f"{name} {number}" for name, number in figures.items()))


@pytest.fixture
def night(tmp_path: Path) -> Iterator[Night]:
    """A night of its own for each round."""
    with simulated_server(tmp_path, latency=LATENCY) as server:
        yield Night(server, f"file://{tmp_path}/store", tmp_path)


def left_by(night: Night) -> Killed:
    """What there is once the model server has ended all that it was asked."""
    saved = night.saved
    night.settled()
    return Killed(night.calls, saved)


def flow_killed(combee: Combee, night: Night, call: int, later: float, by_id: bool) -> Killed:
    """A run from the terminal: killed, then gone on with by the same command, or by its id."""
    process = combee.start(*night.command)
    until(lambda: night.calls >= call, lambda: running(process))
    time.sleep(later)
    kill(process)
    left = left_by(night)
    ids = [key.split("/")[1][:UUID_LENGTH] for key in night.store.list("flow-runs/")]
    done = combee("rerun", ids[0], "--json") if by_id else combee(*night.command)
    assert done.code == 0, done.err
    return Killed(left.calls, left.saved, "combee rerun" if by_id else "the same command")


def deployment_killed(deployed: Deployed, night: Night, victim: str, call: int, later: float) -> Killed:
    """A deployment's run: its worker or server killed, with the run or alone, then started anew."""
    start = deployed.worker if victim.startswith("worker") else lambda: deployed.serve(night.request)
    if victim.startswith("worker"):
        deployed.deploy(night.request)
    process = start()
    ordered = deployed.order()
    until(lambda: night.calls >= call, lambda: unless_failed(ordered))
    time.sleep(later)
    deployed.kill(process, alone="and its run" not in victim)
    if "and its run" not in victim:
        ended(ordered)  # completed, or given up for want of its parent
    left = left_by(night)
    if state_of(ordered).is_completed():
        return left
    start()
    retry(ordered)
    assert ended(ordered) == "Completed", deployed.logs()
    return Killed(left.calls, left.saved, "Retry")


@pytest.mark.parametrize(("seed", "victim"), ROUNDS)
def test_a_killed_night_ends_as_the_undisturbed_one(
    combee: Combee, deployed: Deployed, night: Night, calm: Calm, rounds: list[Round], seed: int, victim: str
) -> None:
    draw = random.Random(seed)
    call, later = draw.randint(1, calm.calls), draw.uniform(0, 2 * LATENCY)
    if victim == "flow":
        left = flow_killed(combee, night, call, later, by_id=seed % 2 == 1)
    else:
        left = deployment_killed(deployed, night, victim, call, later)
    latest, done, lacking = night.latest, completed(night.store), unaccounted(night.store)
    equal = latest is not None and latest.digest == calm.digest
    when = f"{later:.2f} after {call}"
    rounds.append(Round(seed, victim, when, left, night.repeated, len(done), len(lacking), equal))
    assert equal
    assert night.versions == [1]
    assert night.accounted
    assert done
    assert not lacking, "Completed, and the accounting is missing or not that of the store"
    assert night.repeated <= left.in_flight <= IN_FLIGHT
    assert night.calls == calm.calls + night.repeated
