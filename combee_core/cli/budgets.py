"""The options that cap a run and a day, and the budgets that they make."""

from __future__ import annotations

import argparse
from typing import Any, get_args

from pydantic import ValidationError

from combee_core.base import uncapped
from combee_core.config import Budget, OnBudget, RunSettings
from combee_core.errors import UsageError

SETTINGS = ("budget", "day_budget", "on_budget")
"""What of a run's settings these options make."""

_KINDS: dict[str, type] = {"cost": float, "tokens": int, "calls": int, "minutes": float}
_SCOPES = {
    "": "each run (a day, or an input), all its attempts together",
    "_per_day": "all runs of this store on a day in UTC",
}


def add(parser: argparse.ArgumentParser) -> None:
    """The options, in a group of their own."""
    group = parser.add_argument_group("budget")
    for scope, whose in _SCOPES.items():
        for name, kind in _KINDS.items():
            said = Budget.model_fields[name].description or name
            option = f"--max-{name}{scope}".replace("_", "-")
            shown = "X" if kind is float else "N"
            group.add_argument(option, type=kind, metavar=shown, help=f"{uncapped(said)}, of {whose}")
    what = RunSettings.model_fields["on_budget"].description or ""
    group.add_argument("--on-budget", choices=get_args(OnBudget), help=f"{what} (hold)")


def of(args: argparse.Namespace, base: RunSettings) -> dict[str, Any]:
    """The settings of `SETTINGS`, as in `base` where nothing is said. Raises `UsageError` for a cap of 0 or less."""
    return {
        "budget": _budget(args, "", base.budget),
        "day_budget": _budget(args, "_per_day", base.day_budget),
        "on_budget": args.on_budget or base.on_budget,
    }


def _budget(args: argparse.Namespace, scope: str, base: Budget) -> Budget:
    said = {name: getattr(args, f"max_{name}{scope}") for name in _KINDS}
    try:
        return Budget(**base.model_dump() | {name: cap for name, cap in said.items() if cap is not None})
    except ValidationError as error:
        first = error.errors()[0]
        option = f"--max-{first['loc'][0]}{scope}".replace("_", "-")
        raise UsageError(f"{option} {first['input']!r}: {first['msg'].lower()}") from error
