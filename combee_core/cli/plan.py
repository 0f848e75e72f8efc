"""`combee plan`: what a rate of traces will cost, learned in sequence, in the paper's form, in bounded groups."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from typing import Any

from combee_core.cli import options, settings
from combee_core.errors import UsageError

_VERDICTS = {"yes": "", "perhaps": "perhaps more than {:g} h", "no": "more than {:g} h"}


def add(commands: Any) -> None:
    """Register the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "plan", help="what so many traces a day will cost: calls, tokens, money, hours"
    )
    parser.add_argument("--traces-per-day", type=_positive, required=True, metavar="N", help="how many a night learns")
    parser.add_argument("--days", type=_positive, default=30, metavar="D", help="nights to add up (%(default)s)")
    parser.add_argument("--window", type=float, default=24.0, metavar="HOURS", help="for one night (%(default)g)")
    parser.add_argument("--trace-tokens", type=_positive, metavar="T", help="tokens of a trace; by default as observed")
    options.add_learning(parser)
    parser.set_defaults(command=run)


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Print the three forms. Asks no model, writes nothing, needs no server."""
    from combee_core.adapters.ahead import Ahead
    from combee_core.assumptions import assumptions, warnings
    from combee_core.rates import estimate_rate

    if args.window <= 0:
        raise UsageError(f"--window {args.window:g}: a night takes more than no time")
    request = settings.learning_of(args)
    basis = Ahead(request).basis
    if args.trace_tokens:
        basis = basis.weighing(args.trace_tokens)
    forms = estimate_rate(args.traces_per_day, args.days, args.window, basis)
    said = [*assumptions(basis, forms[-1].night, whole_prompts=False)]
    warned = [f"{form.name}: {text}" for form in forms for text in warnings(form.night, basis)]
    if args.json:
        print(json.dumps(_shown(args, request, forms, said, warned), ensure_ascii=False))
    else:
        print("\n".join(_lines(args, request, forms, said, warned)))
    return 0


def _shown(args: argparse.Namespace, request: Any, forms: Sequence[Any], said: list[str], warned: list[str]) -> Any:
    from combee_core.cli.estimates import shown

    rows = [
        {
            "name": form.name,
            "batch_size": form.batch_size,
            "night": shown(form.night),
            "days": shown(form.days),
            "fits": form.fits,
        }
        for form in forms
    ]
    head = {"estimated": True, "traces_per_day": args.traces_per_day, "days": args.days, "window_hours": args.window}
    model = request.settings.model.model
    return {**head, "model": model, "forms": rows, "assumptions": said, "warnings": warned}


def _lines(
    args: argparse.Namespace, request: Any, forms: Sequence[Any], said: list[str], warned: list[str]
) -> Iterator[str]:
    from combee_core.cli.estimates import MARKS, columns, sentences

    yield f"estimates for a night of {args.traces_per_day:,} traces, model {request.settings.model.model}"
    yield ""
    head = ("form", "batch", "reflect", "curate", "merge", "tokens in", "out", "US $", f"{args.days} nights")
    yield from columns((*head, "hours", ""), [_row(form, args.window) for form in forms])
    yield ""
    yield from sentences((MARKS, *said, *warned))


def _row(form: Any, window: float) -> list[str]:
    from combee_core.cli.estimates import calls, hours, money

    night = form.night
    verdict = _VERDICTS[form.fits].format(window)
    tokens = (f"{night.input_tokens:,}", f"{night.output_tokens:,}")
    cost = (money(night.cost), money(form.days.cost))
    stages = calls(night, ("reflect", "curate", "merge"))
    return [form.name, f"{form.batch_size:,}", *stages, *tokens, *cost, hours(night), verdict]
