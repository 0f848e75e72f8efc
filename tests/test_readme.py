"""The walk through a first month, as the README has it: every command, in its order."""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import takewhile
from pathlib import Path

from command import ROOT, Combee, Done, kill
from ports import free_port

_WALK = re.compile(r"### A first month, offline\n(.*?)\n### ", re.DOTALL)
_BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
_FAILS = "# exit 1"
_READY = {"serve": "/deployments/deployment/", "simulate": "simulated model at"}
"""What a command that goes on says when it has begun."""


def commands() -> Iterator[str]:
    """The lines of the chapter's blocks that a reader types."""
    walk = _WALK.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert walk, "the chapter is where the test looks for it"
    for block in _BLOCK.findall(walk[1]):
        yield from (line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ "))


@contextmanager
def background(combee: Combee, words: list[str]) -> Iterator[None]:
    """A command that goes on, from when it says that it has begun until it is told to stop."""
    process = combee.start(*words)
    assert process.stderr is not None
    try:
        said = list(takewhile(lambda line: _READY[words[0]] not in line, process.stderr))
        assert process.poll() is None, "".join(said)
        yield
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            kill(process)


def test_every_command_of_the_walk_does_what_it_says(combee: Combee, tmp_path: Path) -> None:
    here, port = Combee(combee.home, {"OPENAI_API_KEY": "none"}, cwd=tmp_path), str(free_port())
    ended: dict[str, list[Done]] = {}
    with ExitStack() as stack:
        for line in commands():
            text, _, comment = line.partition("   #")
            if text.startswith("export "):
                continue
            words = shlex.split(text.replace("8123", port))
            assert words.pop(0) == "combee", f"the reader types combee: {line}"
            fails = _FAILS in f"#{comment}"
            if "RUN_ID" in words:
                latest = here("runs", "--playbook", "desk", "--limit", "1", "--json").json["runs"][0]
                words[words.index("RUN_ID")] = latest["flow_run_id"]
            if words[-1] == "&":
                stack.enter_context(background(here, words[:-1]))
                continue
            done = here(*words)
            assert done.code == (1 if fails else 0), f"{line}: {done.code}\n{done.out}\n{done.err}"
            ended.setdefault(words[0], []).append(done)
    assert "[" in ended["playbook"][0].out, "a playbook has bullets"
    second = ended["backfill"][-1]
    assert "already learned" in second.out
    assert "learned" in ended["rerun"][-1].out
