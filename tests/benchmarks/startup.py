"""What a command costs before it does anything: CPU seconds, the median of five runs, beside the limit that we keep.

make bench
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

RUNS = 5
LIMITS = {
    "combee --help": (["-m", "combee_core.cli", "--help"], 0.5),
    "import combee_core": (["-c", "import combee_core"], 0.3),
}


def cpu_seconds(arguments: list[str]) -> float:
    """User and system time of one fresh interpreter."""
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{arguments} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Print a line for each command."""
    print(f"{'':<22}{'CPU s':>8}{'limit':>8}{'ratio':>8}")
    for name, (arguments, limit) in LIMITS.items():
        median = statistics.median(cpu_seconds(arguments) for _ in range(RUNS))
        print(f"{name:<22}{median:>8.2f}{limit:>8.2f}{median / limit:>8.2f}")


if __name__ == "__main__":
    main()
