"""`combee profile`: the measured delays, the curve through them, and the batch size that follows."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from combee_core.cli import options, settings
from combee_core.errors import UsageError

_LAST = "note"


def add(commands: Any) -> None:
    """Register the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "profile", help="measured delays, the curve through them, the batch size that follows"
    )
    options.add_store(parser)
    options.add_sizes(parser)
    parser.add_argument("--total", type=int, metavar="N", help="for so many traces; by default as when measured")
    parser.add_argument("--png", metavar="FILE", help="write the picture of the newest curve")
    parser.add_argument("--svg", metavar="FILE", help="write it as SVG")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """Print every curve of the store. Raises `UsageError` where none was measured."""
    from combee_core.adapters.stores import open_store
    from combee_core.batch_size import decide
    from combee_core.measured import all_known

    store = open_store(args.store)
    known = all_known(store)
    if not known:
        raise UsageError(
            f"{store.uri} holds no measured delays; `combee nightly` and `combee learn` measure them "
            "with --batch-size auto"
        )
    decisions = [
        decide(one.observations, settings.sizes_of(args, one.settings), args.total or one.total, one.token_limit)
        for one in known
    ]
    _pictures(args, decisions)
    if args.json:
        pairs = zip(known, decisions, strict=True)
        curves = [{**m.model_dump(mode="json"), "decision": d.model_dump(mode="json")} for m, d in pairs]
        print(json.dumps({"curves": curves}, ensure_ascii=False))
    else:
        for one, decision in zip(known, decisions, strict=True):
            print("\n".join(_lines(one, decision)))
    return 0


def _lines(one: Any, decision: Any) -> Iterator[str]:
    from combee_core.charts import fit_chart, fit_table

    yield f"{one.subject.model} · {one.subject.learner} · {' '.join(one.subject.source)}"
    yield f"measured in run {one.run}{', stale: the next run measures again' if one.stale else ''}"
    yield ""
    if decision.fit:
        yield fit_chart(decision)
        yield ""
    yield from _table(fit_table(decision))
    yield ""
    yield f"batch size {decision.batch_size}: {decision.reason}"
    for drift in one.drifts:
        yield f"run {drift.run}: {drift.deviation:+.0%} against the curve (stale beyond ±{one.settings.drift:.0%})"
    yield ""


def _table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    if not rows:
        return
    head = {name: name for name in rows[0]}
    widths = {name: max(len(str(row[name])) for row in (head, *rows)) for name in head}
    for row in (head, *rows):
        cells = (str(row[name]).rjust(width) for name, width in widths.items() if name != _LAST)
        yield "  ".join((*cells, str(row[_LAST]))).rstrip()


def _pictures(args: argparse.Namespace, decisions: Sequence[Any]) -> None:
    from combee_core.adapters.pictures import fit_picture

    drawn = [decision for decision in decisions if decision.fit]
    for kind in ("png", "svg"):
        file = getattr(args, kind)
        if file and not drawn:
            raise UsageError(f"--{kind} {file}: there is no curve to draw")
        if file:
            Path(file).write_bytes(fit_picture(drawn[-1], kind))
