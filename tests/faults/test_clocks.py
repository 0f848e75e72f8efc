"""The machine's clock jumps by a day, forwards and backwards, in the middle of a night."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from command import Combee, Done
from disturbed import FOR_EVER, IN_FLIGHT, Night, running, until
from missing import missing
from simserver import simulated_server

DAY = 86_400

_CLOCK = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long jumped(void) {
    long seconds = 0;
    FILE *file = fopen(getenv("CLOCK_JUMP"), "r");
    if (file) { if (fscanf(file, "%ld", &seconds) != 1) seconds = 0; fclose(file); }
    return seconds;
}
int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += jumped();
    return failed;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec exact;
    int failed = clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec; now->tv_usec = exact.tv_nsec / 1000;
    return failed;
}
time_t time(time_t *where) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (where) *where = exact.tv_sec;
    return exact.tv_sec;
}
"""
"""A clock in front of the system's: it adds the seconds that a file names at that moment."""


@pytest.fixture(scope="module")
def jumping(combee: Combee, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Combee, Callable[[int], None]]]:
    """The command and a Prefect server on a machine whose clock can be set, and the hand that sets it."""
    folder, compiler = tmp_path_factory.mktemp("clock"), shutil.which("cc")
    if compiler is None:
        missing("a C compiler: apt-get install gcc libc6-dev")
    (folder / "clock.c").write_text(_CLOCK)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "clock.so", folder / "clock.c"], check=True)
    hand = folder / "jump"
    ahead = {"LD_PRELOAD": str(folder / "clock.so"), "CLOCK_JUMP": str(hand)}
    command = replace(combee, home=folder / "home", environ={**combee.environ, **ahead})
    assert command("server", "up").code == 0

    def jump(seconds: int) -> None:
        hand.write_text(str(seconds))

    yield command, jump
    hand.write_text("0")
    command("server", "down")


@pytest.mark.parametrize("seconds", [DAY, -DAY])
@pytest.mark.parametrize("kind", ["file", "s3"])
def test_a_night_whose_clock_jumps_by_a_day_is_not_harmed_and_where_it_fails_goes_on(
    jumping: tuple[Combee, Callable[[int], None]],
    combee: Combee,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    kind: str,
    seconds: int,
) -> None:
    uri = request.getfixturevalue("s3_uri") if kind == "s3" else f"file://{tmp_path}/store"
    there, jump = jumping
    jump(0)
    with simulated_server(tmp_path, latency=1.0) as server:
        night = Night(server, uri, tmp_path)
        process = there.start(*night.command)
        until(lambda: night.calls >= 4, lambda: running(process))
        jump(seconds)
        rival = there(*night.command)
        out, err = process.communicate(timeout=FOR_EVER)
        done = Done(process.returncode, out, err)
        said = "survived" if done.code == 0 else done.json["error"]["message"]
        print(f"\nclock {seconds:+d} s on {kind}: exit {done.code} ({said}), the rival's {rival.code}")
        if done.code:
            # S3 takes no request whose signature is a day old or a day ahead.
            assert kind == "s3"
            assert "combee rerun" in done.err
            night.settled()
            lost = night.calls - night.saved
            jump(0)
            assert there(*night.command).code == 0
            assert night.repeated <= lost <= IN_FLIGHT
        else:
            assert night.repeated == 0
        assert night.versions == [1]
        assert night.accounted
