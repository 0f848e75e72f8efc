"""`--config`: a run configuration as the source of what the options do not say."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from combee_core.errors import UsageError

if TYPE_CHECKING:
    from combee_core.run_file import RunFile


def add_config(parser: argparse.ArgumentParser, nargs: str | None = None) -> None:
    """`--config`: a file that says what the options say; an option counts more."""
    said = "run configuration in TOML; `combee config check FILE` explains it, options count more"
    parser.add_argument("--config", metavar="FILE", nargs=nargs, help=said)


def run_file(path: str | None) -> RunFile:
    """The run configuration in a file, all defaults without one. Raises `UsageError` naming what is wrong with it."""
    from combee_core.run_file import RunFile, read_run_file

    if path is None:
        return RunFile()
    try:
        return read_run_file(Path(path).read_text(encoding="utf-8"), path)
    except OSError as error:
        raise UsageError(f"--config {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"--config {path}: not a text in UTF-8") from error
