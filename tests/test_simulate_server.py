"""The simulated model over HTTP: a real server in a process of its own."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from simserver import ROOT, SimulatedServer, simulated_server
from simulated_calls import ACE, EMPTY, WORLD, failed, rule_reflections

from combee_core.calls import Prompt
from combee_core.simulation.call_log import CallLog
from combee_core.simulation.chat import Chat
from combee_core.simulation.overload import FINER
from combee_core.simulation.provider import Provider
from combee_core.simulation.responder import answer_text
from combee_core.types import Group

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedServer]:
    with simulated_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def server(shared: SimulatedServer) -> SimulatedServer:
    """The module's server, without faults."""
    shared.set_faults()
    return shared


def body(prompt: Prompt, seed: int = 0, model: str = "simulated/overload") -> dict[str, Any]:
    return {"model": model, "messages": [m.model_dump() for m in prompt.messages], "seed": seed}


def rollout(n: int = 0) -> dict[str, Any]:
    return body(ACE.solve(EMPTY, WORLD.sample(n + 1, seed=0)[n]).prompt)


def curating(number: int = 1) -> Prompt:
    return ACE.curate(EMPTY, Group(number=number, of=6, entries=tuple(rule_reflections(30)))).prompt


def content(answer: Any) -> Any:
    return answer["choices"][0]["message"]["content"]


@pytest.mark.parametrize("path", [CHAT, "/chat/completions"])
def test_an_answer_over_http_is_byte_for_byte_the_one_given_in_process(server: SimulatedServer, path: str) -> None:
    group = tuple(rule_reflections(30))
    operations = ACE.curate(EMPTY, Group(number=1, of=1, entries=group))
    merging = ACE.merge(EMPTY, operations.parse(json.loads(answer_text(operations.prompt.messages, 0))).operations)
    prompts = [ACE.reflect(EMPTY, failed(0)).prompt, operations.prompt, merging.prompt]
    for prompt in prompts:
        for seed in (0, 7):
            assert content(server.post(path, body(prompt, seed))) == answer_text(prompt.messages, seed)


def test_an_answer_has_the_openai_shape(server: SimulatedServer) -> None:
    answer = server.post(CHAT, rollout())
    assert (answer["object"], answer["model"]) == ("chat.completion", "simulated/overload")
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["choices"][0]["message"]["role"] == "assistant"
    usage = answer["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > 100


def test_any_model_name_is_answered_and_the_known_ones_are_listed(server: SimulatedServer) -> None:
    assert server.post(CHAT, rollout() | {"model": "any"})["model"] == "simulated/overload"
    finer = server.post(CHAT, body(curating(), model="simulated/overload-finer"))
    assert content(finer) == answer_text(curating().messages, 0, FINER)
    for path in ("/models", "/v1/models"):
        names = [row["id"] for row in server.get(path)["data"]]
        assert names == ["simulated/overload", "simulated/overload-finer"]


def test_content_may_come_in_parts_and_the_seed_may_be_missing(server: SimulatedServer) -> None:
    asked = rollout()
    plain = content(server.post(CHAT, asked))
    for message in asked["messages"]:
        message["content"] = [{"type": "text", "text": message["content"]}]
    del asked["seed"]
    assert content(server.post(CHAT, asked)) == plain


def test_it_says_that_it_is_well(server: SimulatedServer) -> None:
    assert server.get("/healthz") == {"status": "ok"}


@pytest.mark.parametrize(
    "sent", [b"{", b"[]", b"{}", b'{"messages": []}', b'{"messages": [1]}', b'{"messages": [{}], "stream": true}']
)
def test_a_bad_request_is_told_so_in_the_openai_shape(server: SimulatedServer, sent: bytes) -> None:
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(server.url + "/chat/completions", sent, timeout=30)
    with caught.value as error:
        assert error.code == 400
        assert json.load(error)["error"]["type"] == "invalid_request_error"


def test_sixty_four_calls_at_once_are_all_answered_and_logged(server: SimulatedServer) -> None:
    before, lines = server.stats()["total"], len(server.log())
    with ThreadPoolExecutor(64) as pool:
        answers = list(pool.map(lambda n: content(server.post(CHAT, rollout(n))), range(64)))
    assert answers == [content(server.post(CHAT, rollout(n))) for n in range(64)]
    assert server.stats()["total"] - before == 128
    events = [(line["n"], line["event"]) for line in server.log()[lines:]]
    assert len(set(events)) == len(events) == 256


def test_the_log_has_a_line_at_the_start_and_at_the_end_of_a_call(server: SimulatedServer) -> None:
    server.post(CHAT, body(curating(number=4)))
    start, end = server.log()[-2:]
    assert set(start) == {"n", "event", "stage", "group", "prompt_sha", "status", "at", "seconds"}
    assert (start["event"], start["stage"], start["group"], start["status"]) == ("start", "curate", 4, None)
    assert (end["event"], end["status"], end["n"]) == ("end", 200, start["n"])
    assert end["prompt_sha"] == start["prompt_sha"]
    assert end["at"] - start["at"] == pytest.approx(end["seconds"] - start["seconds"], abs=1e-4)
    server.post(CHAT, rollout())
    assert server.log()[-1]["group"] is None


def test_calls_are_counted_by_stage(server: SimulatedServer) -> None:
    before = server.stats()["stages"].get("curate", {"calls": 0, "ok": 0, "faults": 0})
    server.post(CHAT, body(curating()))
    server.set_faults("stage=curate,kind=empty")
    server.post(CHAT, body(curating()))
    after = server.stats()
    assert after["stages"]["curate"] == {
        "calls": before["calls"] + 2,
        "ok": before["ok"] + 1,
        "faults": before["faults"] + 1,
    }
    assert after["total"] == sum(stage["calls"] for stage in after["stages"].values())


@pytest.mark.parametrize(
    ("fault", "status", "wait"),
    [("kind=429", 429, "1"), ("kind=429,retry_after=7", 429, "7"), ("kind=529", 529, None), ("kind=500", 500, None)],
)
def test_a_status_fault_answers_with_that_status(
    server: SimulatedServer, fault: str, status: int, wait: str | None
) -> None:
    server.set_faults(fault)
    with pytest.raises(urllib.error.HTTPError) as caught:
        server.post(CHAT, rollout())
    with caught.value as error:
        assert (error.code, error.headers["retry-after"]) == (status, wait)
        assert "message" in json.load(error)["error"]
    assert server.log()[-1]["status"] == status


@pytest.mark.parametrize(
    ("kind", "finish"),
    [("truncated", "length"), ("filter", "content_filter"), ("refusal", "stop"), ("empty", "stop")],
)
def test_a_spoilt_answer_keeps_the_shape(server: SimulatedServer, kind: str, finish: str) -> None:
    server.set_faults(f"kind={kind}")
    choice = server.post(CHAT, rollout())["choices"][0]
    assert choice["finish_reason"] == finish
    assert (choice["message"]["refusal"] is not None) == (kind == "refusal")


def test_a_dropped_answer_ends_in_the_middle(server: SimulatedServer) -> None:
    server.set_faults("kind=drop,count=1")
    with pytest.raises(http.client.IncompleteRead) as caught:
        server.post(CHAT, rollout())
    assert caught.value.partial
    assert server.log()[-1]["status"] == "drop"
    assert content(server.post(CHAT, rollout()))


def test_a_timeout_answers_nothing_until_the_client_leaves(server: SimulatedServer) -> None:
    server.set_faults("kind=timeout")
    with pytest.raises(TimeoutError):
        server.post(CHAT, rollout(), timeout=0.3)
    ended = threading.Event()
    while not ended.wait(0.05):
        if server.stats()["running"] == 0:
            ended.set()
    assert server.log()[-1]["status"] == "timeout"


def test_a_fault_may_be_limited_to_one_group_and_taken_away(server: SimulatedServer) -> None:
    assert server.set_faults("stage=curate,group=3,kind=500")["faults"] == ["stage=curate,group=3,kind=500"]
    assert content(server.post(CHAT, body(curating(number=2))))
    with pytest.raises(urllib.error.HTTPError) as caught:
        server.post(CHAT, body(curating(number=3)))
    caught.value.close()
    server.set_faults()
    assert content(server.post(CHAT, body(curating(number=3))))


def test_wrong_faults_are_refused_and_the_old_ones_stay(server: SimulatedServer) -> None:
    server.set_faults("kind=empty")
    for wrong in (["kind=boom"], {"kind": "500"}):
        with pytest.raises(urllib.error.HTTPError) as caught:
            server.post("/faults", wrong)
        with caught.value as error:
            assert error.code == 400
    assert content(server.post(CHAT, rollout())) == ""


def test_options_at_the_start_set_latency_faults_and_log(tmp_path: Path) -> None:
    (tmp_path / "calls.jsonl").write_text('{"n": 0}\n')
    with simulated_server(tmp_path, faults=["kind=500,count=1", "kind=empty,count=1"], latency=0.05) as running:
        with pytest.raises(urllib.error.HTTPError) as caught:
            running.post(CHAT, rollout())
        caught.value.close()
        assert content(running.post(CHAT, rollout())) == ""
        assert content(running.post(CHAT, rollout()))
        first, *lines = running.log()
    assert first == {"n": 0}
    assert [line["status"] for line in lines if line["event"] == "end"] == [500, 200, 200]
    assert lines[-1]["seconds"] >= 0.05


def test_latencies_by_the_order_of_calls_are_an_option(tmp_path: Path) -> None:
    with simulated_server(tmp_path, latency=0.01, sigma=1.0, seed=4) as running:
        before = time.time()
        assert content(running.post(CHAT, rollout()))
        start, end = running.log()
    assert before - 1 <= start["at"] <= end["at"] <= time.time() + 1
    number_one = Provider(CallLog(time.time), latency=0.01, latency_sigma=1.0, latency_seed=4)
    assert end["seconds"] >= number_one.seconds(Chat((), 0, "simulated/overload"), 1)


def test_a_hanging_call_does_not_keep_the_server_alive(tmp_path: Path) -> None:
    with simulated_server(tmp_path, faults=["kind=timeout"]) as running:
        hanging = threading.Thread(target=_ask_and_expect_no_answer, args=(running,))
        hanging.start()
        waiting = threading.Event()
        while not running.log():
            waiting.wait(0.02)
    hanging.join(timeout=30)
    assert running.process.returncode == 0


def _ask_and_expect_no_answer(running: SimulatedServer) -> None:
    with pytest.raises((OSError, http.client.HTTPException)) as caught:
        running.post(CHAT, rollout())
    if isinstance(caught.value, urllib.error.HTTPError):
        caught.value.close()


@pytest.mark.parametrize("options", [["--fault", "kind=boom"], ["--fault", "shape=round"]])
def test_a_wrong_option_ends_with_code_two_and_the_way_out(options: list[str]) -> None:
    done = _run(options)
    assert done.returncode == 2
    assert "the k" in done.stderr


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = _run(["--port", str(port)])
    assert done.returncode == 2
    assert f"127.0.0.1:{port}" in done.stderr
    assert "--port 0" in done.stderr


def test_a_log_that_cannot_be_written_is_refused_before_the_first_call(tmp_path: Path) -> None:
    done = _run(["--log", str(tmp_path)])
    assert done.returncode == 2
    assert str(tmp_path) in done.stderr


def test_help_lists_every_kind_of_fault() -> None:
    said = " ".join(_run(["--help"]).stdout.split())
    assert "bare_array: " in said
    assert "retry_after: " in said


def _run(options: list[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "combee_core.simulation.server", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
