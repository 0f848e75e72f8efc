"""`combee backlog`: what was refused or failed, why, and what is done about it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from combee_core.cli import options
from combee_core.errors import UsageError

if TYPE_CHECKING:
    from combee_core.backlog import Entry
    from combee_core.config import RunRequest
    from combee_core.ports import Store


def add(commands: Any) -> None:
    """Register the command and its actions."""
    text = "traces that were refused or failed: list, retry or drop them"
    parser: argparse.ArgumentParser = commands.add_parser("backlog", help=text)
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    _action(actions, "list", _list, "what is filed, and why")
    retry = _action(actions, "retry", _retry, "learn it now; without IDs all whose content is in the store")
    retry.add_argument("--model", metavar="NAME", help="another model than the run's that filed them")
    retry.add_argument("--api-base", metavar="URL", help="base address of the model's server")
    _action(actions, "drop", _drop, "take entries out for good; without IDs all")


def _action(actions: Any, name: str, command: Any, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, help=text)
    parser.add_argument("ids", nargs="*", metavar="ID", help="as `list` shows it, or a trace's id")
    parser.add_argument("--playbook", default="playbook", metavar="NAME", help="whose backlog (%(default)s)")
    options.add_store(parser)
    parser.set_defaults(command=command)
    return parser


def _open(args: argparse.Namespace) -> tuple[Store, list[Entry]]:
    """The store, and the entries that were named; all without IDs. Raises `UsageError` for one that is not filed."""
    from combee_core.adapters.stores import open_store
    from combee_core.backlog import entries

    store = open_store(args.store)
    filed = sorted(entries(store, args.playbook), key=lambda entry: (entry.trace_id, entry.id))
    unknown = set(args.ids) - {entry.id for entry in filed} - {entry.trace_id for entry in filed}
    if unknown:
        raise UsageError(
            f"nothing is filed as {min(unknown)} for {args.playbook} in {store.uri}; see combee backlog list"
        )
    return store, [entry for entry in filed if not args.ids or {entry.id, entry.trace_id} & set(args.ids)]


def _list(args: argparse.Namespace) -> int:
    from combee_core.backlog import standing

    store, filed = _open(args)
    shown = [(entry, reason or "the next night tries it again") for entry, reason in standing(store, filed)]
    if args.json:
        rows = [{"id": entry.id, **entry.model_dump(mode="json"), "next": then} for entry, then in shown]
        print(json.dumps({"playbook": args.playbook, "entries": rows}, ensure_ascii=False))
        return 0
    for entry, then in shown:
        print(f"{entry.id}  {entry.trace_id}: {entry.fate} in run {entry.run}, tried again {entry.tries} times")
        print(f"    {' '.join(entry.reason.split())}\n    {then}")
    print(f"{len(shown)} traces in the backlog of {args.playbook}")
    return 0


def _retry(args: argparse.Namespace) -> int:
    from combee_core.backlog import MOST_AT_ONCE, one_of_each_id, request_of, standing
    from combee_core.cli import launch

    store, filed = _open(args)
    ready: list[Entry] = []
    for entry, reason in standing(store, filed, most=sys.maxsize):
        if reason:
            launch.note(f"{entry.trace_id}: {reason}")
        else:
            ready.append(entry)
    chosen = one_of_each_id(ready)[:MOST_AT_ONCE]
    if not chosen:
        print(json.dumps({"playbook": args.playbook, "retried": 0}) if args.json else "nothing can be tried again now")
        return 1 if filed else 0
    result, error = launch.terminal().start("epoch", request_of(_request(store, chosen, args), chosen))
    return launch.report(result, error, as_json=args.json)


def _request(store: Store, chosen: Sequence[Entry], args: argparse.Namespace) -> RunRequest:
    """What the run asked for that filed the first of these, with the model that is named now."""
    from combee_core.runs import Run

    request = Run(store, chosen[0].run).plan().request
    named = {name: value for name in ("model", "api_base") if (value := getattr(args, name)) is not None}
    model = request.settings.model.model_copy(update=named)
    settings = request.settings.model_copy(update={"model": model})
    return request.model_copy(update={"store": store.uri, "settings": settings})


def _drop(args: argparse.Namespace) -> int:
    from combee_core.backlog import drop

    store, filed = _open(args)
    drop(store, args.playbook, filed)
    ids = [entry.id for entry in filed]
    print(json.dumps({"playbook": args.playbook, "dropped": ids}) if args.json else f"{len(ids)} traces dropped")
    return 0
