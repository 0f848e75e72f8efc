"""Every deployment's flow really loads, its parameters are what the flow takes, and the image has what it needs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from prefect.flows import load_flow_from_entrypoint
from prefect.schedules import Cron
from prefect.utilities.callables import parameter_schema
from prefect.utilities.schema_tools.validation import validate

from combee_core.config import RunRequest
from combee_core.run_file import CRON, read_run_file
from flows.serving import SCHEDULED, SERVED

ROOT = Path(__file__).parents[1]
FILE = yaml.safe_load((ROOT / "deployments" / "prefect.yaml").read_text())
DEPLOYMENTS = {one["name"]: one for one in FILE["deployments"]}
EACH = pytest.mark.parametrize("deployment", DEPLOYMENTS.values(), ids=lambda deployment: deployment["name"])
DOCKERFILE = (ROOT / "deployments" / "Dockerfile").read_text()
STEPS = [line.split(maxsplit=1) for line in DOCKERFILE.splitlines() if line and not line.startswith("#")]


def test_what_is_served_without_a_pool_is_deployed_to_one() -> None:
    assert set(DEPLOYMENTS) == {flow.name for flow in SERVED}
    assert {name for name, one in DEPLOYMENTS.items() if one.get("schedules")} == {flow.name for flow in SCHEDULED}


@EACH
def test_the_entrypoint_loads_and_takes_the_parameters(
    deployment: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    flow = load_flow_from_entrypoint(deployment["entrypoint"], use_placeholder_flow=False)
    assert flow.name == deployment["name"]
    schema = parameter_schema(flow).model_dump()
    validate(deployment["parameters"], schema, raise_on_error=True, ignore_required=True, preprocess=False)
    request = RunRequest.model_validate(deployment["parameters"]["request"])
    assert request.source.uris
    assert request.settings.model.model


@EACH
def test_one_run_at_a_time_in_a_pool_of_ours(deployment: dict[str, Any]) -> None:
    assert deployment["concurrency_limit"] == {"limit": 1, "collision_strategy": "CANCEL_NEW"}
    assert deployment["work_pool"] == {"name": "combee"}


def test_nights_start_as_they_do_without_a_pool_in_the_zone_whose_days_they_learn() -> None:
    (schedule,) = DEPLOYMENTS["nightly"]["schedules"]
    assert schedule["cron"] == CRON
    assert schedule["timezone"] == DEPLOYMENTS["nightly"]["parameters"]["request"]["source"]["timezone"]


@pytest.mark.parametrize("file", sorted((ROOT / "deployments").glob("*.toml")), ids=lambda file: file.stem)
def test_the_schedule_of_each_configuration_is_one_to_the_scheduler_too(file: Path) -> None:
    read = read_run_file(file.read_text(), file.name)
    assert Cron(read.schedule.cron, timezone=read.source.timezone).cron == read.schedule.cron


# the image


def copied() -> list[tuple[list[str], str]]:
    """What each COPY takes from the project, and where to."""
    return [(words[:-1], words[-1]) for kind, rest in STEPS if kind == "COPY" for words in [rest.split()]]


def test_the_image_copies_what_there_is() -> None:
    sources = [source for taken, _ in copied() for source in taken]
    assert all((ROOT / source).exists() for source in sources)
    assert {"combee_core", "flows", "tasks"} <= set(sources)


def test_the_worker_gives_the_command_and_no_root_runs_it() -> None:
    kinds = [kind for kind, _ in STEPS]
    assert not {"ENTRYPOINT", "CMD"} & set(kinds)
    assert "--uid" in DOCKERFILE
    assert ["USER", "combee"] in STEPS
    assert not [rest for kind, rest in STEPS[kinds.index("USER") :] if kind in ("RUN", "COPY")]


def test_the_image_finds_the_flows_where_the_pull_step_looks() -> None:
    (pull,) = FILE["pull"]
    (place,) = re.findall(r"COMBEE_CHECKOUT=(\S+)", next(rest for kind, rest in STEPS if kind == "ENV"))
    assert pull["prefect.deployments.steps.set_working_directory"]["directory"] == "{{ $COMBEE_CHECKOUT }}"
    folders = [rest for kind, rest in STEPS if kind == "WORKDIR"]
    assert folders[-1] == place


def test_the_image_installs_pinned_extras_that_the_package_has() -> None:
    (install,) = [rest for kind, rest in STEPS if kind == "RUN" and "pip install" in rest]
    assert "--constraint constraints.txt" in install
    (extras,) = re.findall(r"'\.\[([a-z0-9,]+)\]'", install)
    declared = (ROOT / "pyproject.toml").read_text()
    assert set(extras.split(",")) == {"pipeline", "s3"}
    assert all(re.search(rf"^{extra} = \[", declared, re.M) for extra in extras.split(","))


def test_what_the_image_copies_first_is_enough_to_build_the_package(tmp_path: Path) -> None:
    """As `pip install .` does in the image, without its network."""
    until = next(n for n, (kind, rest) in enumerate(STEPS) if kind == "RUN" and "pip install" in rest)
    for rest in (rest for kind, rest in STEPS[:until] if kind == "COPY"):
        for name in rest.split()[:-1]:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
            copy(ROOT / name, tmp_path / name)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert list((tmp_path / "dist").glob("combee_pipeline-*.whl"))
