"""Runs the benchmarks one after the other and sums up their bars.

    make bench                          # all of them
    make bench ONLY=orchestration,peers

A missed bar is shown and is not an error; a benchmark that fails is.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from common import results_of, saved_bars

TAKES = {
    "startup": "10 s",
    "controller": "1 min",
    "quality": "5 min",
    "client": "2 min",
    "peers": "6 min",
    "orchestration": "9 min",
    "growth": "25 min",
}
"""Each benchmark, and how long it takes on two cores."""


def main() -> int:
    """1 if a benchmark failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="NAME,…", help=f"some of {', '.join(TAKES)}")
    chosen = [name.strip() for name in parser.parse_args().only.split(",") if name.strip()] or list(TAKES)
    if strange := [name for name in chosen if name not in TAKES]:
        parser.error(f"there is no benchmark {strange[0]!r}; there are {', '.join(TAKES)}")
    for path in (path for name in chosen for path in results_of(name)):
        path.unlink()
    failed = [name for name in chosen if not _runs(name)]
    _sum_up(chosen)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _runs(name: str) -> bool:
    print(f"\n== {name}: about {TAKES[name]} on two cores", flush=True)
    return subprocess.run([sys.executable, Path(__file__).with_name(f"{name}.py")], check=False).returncode == 0


def _sum_up(names: Sequence[str]) -> None:
    print("\n== bars")
    for name in names:
        for bar in (bar for path in results_of(name) for bar in saved_bars(path)):
            print(f"{name:<14} {bar.line}")


if __name__ == "__main__":
    sys.exit(main())
