"""An embedding model of any provider tells a merge what is alike: real litellm, real HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from asking import client, memory, run
from builders import ACE, EMPTY, add
from fake_provider import FakeProvider, Received, Reply, failure, vectors_of
from lessons import answer, insight
from litellm_calls import MARKS
from ports import free_port

from combee_core.adapters.embedding import BATCH, LitellmEmbedding, embedding_of
from combee_core.config import ModelSettings, RunSettings
from combee_core.errors import ModelFault, ModelUnusable
from combee_core.inline import Inline
from combee_core.ports import Store
from combee_core.scoring import SCORERS
from combee_core.testing import ScriptedModel
from combee_core.tfidf import vectors
from combee_core.types import Curated, Delta, Operation

pytestmark = MARKS


def model(provider: FakeProvider, store: Store | None = None, naps: list[float] | None = None, **more: Any) -> Any:
    settings = ModelSettings(**{"api_base": provider.url, "timeout": 10, **more})
    taken = [] if naps is None else naps
    return LitellmEmbedding("openai/small", settings, store or memory(), taken.append)


def by_length(text: str) -> list[float]:
    """Two numbers that tell texts of different lengths apart."""
    return [float(len(text)), 1.0]


def serving(of: Callable[[str], list[float]] = by_length) -> FakeProvider:
    return FakeProvider(lambda asked: vectors_of(asked, of))


def test_every_text_becomes_a_row_of_length_one() -> None:
    with serving() as provider:
        rows = model(provider)(["abc", "abcdef"])
        (asked,) = provider.chats
    assert (asked.path, asked.body["model"], asked.body["input"]) == ("/v1/embeddings", "small", ["abc", "abcdef"])
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 1])
    assert rows[0] == pytest.approx(np.array([3, 1]) / 10**0.5)
    assert rows.dtype == np.float32


def test_many_texts_are_asked_about_in_batches() -> None:
    texts = [f"{n:04d}" + "x" * n for n in range(2 * BATCH + 3)]
    with serving() as provider:
        rows = model(provider)(texts)
        sizes = sorted(len(asked.body["input"]) for asked in provider.chats)
    assert sizes == [3, BATCH, BATCH]
    assert rows[:, 0] / rows[:, 1] == pytest.approx([len(text) for text in texts], rel=1e-4)


def test_the_order_in_which_the_rows_come_does_not_matter() -> None:
    def backwards(asked: Received) -> Reply:
        record = json.loads(vectors_of(asked, by_length).body)
        return Reply(json.dumps({**record, "data": record["data"][::-1]}).encode())

    with FakeProvider(backwards) as provider:
        rows = model(provider)(["a", "abc"])
    assert rows[:, 0] / rows[:, 1] == pytest.approx([1, 3])


def test_what_was_paid_for_is_not_asked_again() -> None:
    store = memory()
    with serving() as provider:
        first = model(provider, store)(["abc", "abcdef"])
        assert model(provider, store)(["abc", "abcdef"]).tolist() == first.tolist()
        assert provider.calls == 1
        model(provider, store)(["abc", "other"])
        assert provider.calls == 2


def test_a_record_that_cannot_be_read_is_asked_for_again() -> None:
    store = memory()
    with serving() as provider:
        first = model(provider, store)(["abc", "abcdef"])
        (path,) = store.list("embeddings/")
        blob = store.read(path)
        assert blob is not None
        store.replace(path, b"spoilt", blob.tag)
        assert model(provider, store)(["abc", "abcdef"]).tolist() == first.tolist()
        assert provider.calls == 2


def test_a_text_of_nothing_is_not_sent() -> None:
    with serving() as provider:
        assert model(provider)(["", "abc\ud800"]).shape == (2, 2)
        assert provider.chats[0].body["input"] == ["-", "abc\ufffd"]


def test_a_busy_server_is_waited_for_and_a_fault_asked_again() -> None:
    replies = [failure(429, "slow down", retry_after="7"), failure(500, "oops")]

    def script(asked: Received) -> Reply:
        return replies.pop(0) if replies else vectors_of(asked, by_length)

    naps: list[float] = []
    with FakeProvider(script) as provider:
        assert model(provider, naps=naps, retries=2, retry_delay=3)(["a", "b"]).shape == (2, 2)
        assert provider.calls == 3
    assert naps == [7, 6]


def test_a_wrong_name_or_key_is_told_at_once() -> None:
    for reply, told in (failure(404, "no such model"), "check the name"), (failure(401, "bad key"), "OPENAI_API_KEY"):
        with FakeProvider([reply]) as provider:
            with pytest.raises(ModelUnusable, match=told):
                model(provider)(["a", "b"])
            assert provider.calls == 1


def test_where_nothing_listens_that_is_said_after_the_retries() -> None:
    naps: list[float] = []
    settings = ModelSettings(api_base=f"http://127.0.0.1:{free_port()}/v1", retries=1, retry_delay=2)
    with pytest.raises(ModelFault, match="nothing listens at"):
        LitellmEmbedding("openai/small", settings, memory(), naps.append)(["a", "b"])
    assert naps == [2]


@pytest.mark.parametrize("rows", [[[1.0, 2.0]], [[1.0], [1.0, 2.0]], [["x"], ["y"]], [[float("nan")], [1.0]]])
def test_what_is_no_vector_for_each_text_is_a_fault(rows: list[Any]) -> None:
    data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    body = {"object": "list", "data": data, "model": "small", "usage": usage}
    reply = Reply(json.dumps(body).encode(), headers={"content-type": "application/json"})
    with FakeProvider([reply]) as provider, pytest.raises(ModelFault, match="openai/small"):
        model(provider, retries=0)(["a", "b"])


# in a merge


def test_a_merge_puts_together_what_the_model_calls_alike() -> None:
    """Of eight lessons in four groups, in pairs of one topic each; by their letters no two are alike."""

    def topic(text: str) -> list[float]:
        number = next(n for n in range(1, 9) if insight(n) == text)
        return [float(number // 2 == at) for at in range(5)]

    groups = [Curated(group=n, delta=Delta(operations=(said(2 * n - 1), said(2 * n)))) for n in range(1, 5)]
    settings = RunSettings(merge="cluster")
    merger = ScriptedModel(answer)
    with serving(topic) as provider:
        learn = partial(Inline, ACE, client(merger), settings, SCORERS["exact"])
        run(learn().merge(groups, EMPTY))
        assert merger.requests == []
        run(learn(embed=model(provider)).merge(groups, EMPTY))
        assert provider.calls == 1
    read = [request.prompt.messages[-1].content for request in merger.requests]
    assert [[n for n in range(1, 9) if insight(n) in text] for text in read] == [[2, 3], [4, 5], [6, 7]]


def said(number: int) -> Operation:
    return add(insight(number), f"t{number:02d}", origin=f"curate-g{(number + 1) // 2:02d}")


def test_without_a_model_pieces_of_words_are_counted() -> None:
    assert embedding_of(RunSettings(), memory()) is vectors
    made = embedding_of(RunSettings(embedding="openai/small"), memory())
    assert isinstance(made, LitellmEmbedding)
