"""What is deployed. One more is a flow more in `SERVED`, and in `SCHEDULED` if it runs every night."""

from __future__ import annotations

from typing import Any

from prefect import Flow
from prefect.deployments.runner import RunnerDeployment

from combee_core.run_file import RunFile
from flows.backfill import backfill
from flows.measuring import profile
from flows.nightly import nightly
from tasks import serving

SERVED: tuple[Flow[Any, Any], ...] = (nightly, backfill, profile)
SCHEDULED: tuple[Flow[Any, Any], ...] = (nightly,)

register, wait = serving.register, serving.wait


def deployments(file: RunFile, label: str = "") -> list[RunnerDeployment]:
    """A deployment of each flow for one playbook; `label` tells several playbooks' apart."""
    return [serving.deployment(flow, file, label, scheduled=flow in SCHEDULED) for flow in SERVED]
