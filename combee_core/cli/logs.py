"""Where a command's own lines go, and in which form: stderr, as text or as one JSON object a line."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from typing import Literal, get_args

Form = Literal["text", "json"]

LOG = logging.getLogger("combee")
_VARIABLE = "COMBEE_LOG"


class _Stderr(logging.Handler):
    """Writes to what is stderr now."""

    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record), file=sys.stderr, flush=True)


def option() -> argparse.ArgumentParser:
    """A parser for `--log-format` alone, which every command understands."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    help_text = f"lines on stderr: text, or one JSON object each (by default ${_VARIABLE}, else text)"
    parser.add_argument("--log-format", choices=get_args(Form), help=help_text)
    return parser


def set_up(form: Form | None) -> None:
    """Let this process, and the flow runs that it starts, log in that form."""
    as_json = (form or os.environ.get(_VARIABLE)) == "json"
    handler = _Stderr()
    handler.setFormatter(_formatter(as_json))
    LOG.handlers, LOG.propagate = [handler], False
    LOG.setLevel(logging.INFO)
    if as_json:
        os.environ[_VARIABLE] = "json"
        # Prefect leaves a root logger alone that has a handler of its own.
        logging.getLogger().handlers = [handler]
        _for_children()


def _formatter(as_json: bool) -> logging.Formatter:
    if not as_json:
        return logging.Formatter("combee: %(message)s")
    from combee_core.events import JsonLines

    return JsonLines()


def _for_children() -> None:
    from combee_core.cli.launch import checkout
    from combee_core.errors import UsageError

    try:
        settings = checkout() / "deployments" / "logging-json.yml"
    except UsageError:
        return
    if settings.exists():
        os.environ.setdefault("PREFECT_LOGGING_SETTINGS_PATH", str(settings))
