"""What a command costs before it does anything: CPU seconds, the median of five runs.

python tests/benchmarks/startup.py
"""

from __future__ import annotations

import statistics
import sys

from common import measured, save

RUNS = 5
LIMITS = {
    "combee --help": (["-m", "combee_core.cli", "--help"], 0.5),
    "import combee_core": (["-c", "import combee_core"], 0.3),
}


def cpu_seconds(arguments: list[str]) -> float:
    """User and system time of one fresh interpreter."""
    cost = measured([sys.executable, *arguments])
    if cost.code:
        raise SystemExit(f"{arguments} ended with {cost.code}")
    return cost.cpu


def main() -> None:
    """Measure, print, keep."""
    medians = {name: statistics.median(cpu_seconds(asked) for _ in range(RUNS)) for name, (asked, _) in LIMITS.items()}
    import pandas

    rows = [
        {"command": name, "cpu_s": medians[name], "limit": limit, "ratio": medians[name] / limit}
        for name, (_, limit) in LIMITS.items()
    ]
    save("startup", pandas.DataFrame(rows), {"runs": RUNS})


if __name__ == "__main__":
    main()
