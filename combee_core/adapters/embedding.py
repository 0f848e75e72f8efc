"""Texts as vectors of an embedding model of any provider, through litellm; each text of a run is paid for once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from inspect import iscoroutinefunction
from io import BytesIO
from typing import TYPE_CHECKING, Any

from combee_core.adapters.classify import classify, fault_of
from combee_core.adapters.litellm_wire import public_address, route_of
from combee_core.adapters.load_litellm import load_litellm
from combee_core.base import content_hash, whole
from combee_core.clustering import Embed
from combee_core.config import ModelSettings, RunSettings
from combee_core.errors import ModelBusy, ModelError, ModelFault
from combee_core.ports import Store
from combee_core.tfidf import vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.float32]

BATCH = 128
"""Texts of one request."""


def embedding_of(settings: RunSettings, store: Store) -> Embed:
    """What these settings say: an embedding model's vectors, or counts of pieces of words without one."""
    if settings.embedding is None:
        return vectors
    asked = settings.model.model_copy(update={"api_base": _address(settings.embedding, settings.model)})
    return LitellmEmbedding(settings.embedding, asked, store)


def _address(embedding: str, model: ModelSettings) -> str | None:
    """The server's address, also where litellm would take it from the environment: rows are kept by it."""
    if model.api_base or not embedding.startswith("openai/"):
        return model.api_base
    return os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE") or None


@dataclass(frozen=True)
class LitellmEmbedding:
    """Texts → a row of length 1 for each, by `model`, a litellm string such as `openai/text-embedding-3-small`.

    Address, time-out and retries are those of the run's model, keys come from the environment. The rows of a request
    are kept in the store under the hash of what was asked, `embeddings/…`, so that a rerun pays for none twice.
    What counts as alike (`clustering.ALIKE`) was measured for pieces of words: the cosines of another model lie
    elsewhere, mostly higher, and `--alike` should be set for it.

    It blocks. Raises the leaves of `ModelError` once the retries are used up.
    """

    model: str
    settings: ModelSettings
    store: Store
    sleep: Callable[[float], None] = time.sleep

    def __call__(self, texts: Sequence[str]) -> Rows:
        """Float32, one row a text."""
        import numpy as np

        parts = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
        # In a thread of its own: in the main one litellm would open an event loop and leave it open. In one: at once it
        # would make a client for each.
        try:
            with ThreadPoolExecutor(1) as pool:
                rows = np.concatenate([*pool.map(self._rows, parts)])
        finally:
            _close_connections()
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.where(lengths > 0, lengths, 1), np.float32)

    def _rows(self, texts: Sequence[str]) -> Rows:
        import numpy as np

        # Providers refuse a text of nothing.
        asked = [whole(text) if text.strip() else "-" for text in texts]
        key = content_hash(self.model, public_address(self.settings.api_base), asked)
        path = f"embeddings/{key[:2]}/{key}.npy"
        saved = self._saved(path)
        if saved is not None:
            return saved
        rows, out = self._bought(asked), BytesIO()
        np.save(out, rows, allow_pickle=False)
        self.store.create(path, out.getvalue())
        return rows

    def _saved(self, path: str) -> Rows | None:
        """A record that cannot be read counts as absent."""
        import numpy as np

        blob = self.store.read(path)
        with suppress(ValueError, EOFError):
            return np.asarray(np.load(BytesIO(blob.data), allow_pickle=False), np.float32) if blob else None
        return None

    def _bought(self, texts: list[str]) -> Rows:
        for retry in range(self.settings.retries):
            try:
                return self._ask(texts)
            except ModelError as error:
                if not error.retryable:
                    raise
                asked_for = error.retry_after if isinstance(error, ModelBusy) else None
                self.sleep(self.settings.retry_delay * 2**retry if asked_for is None else asked_for)
        return self._ask(texts)

    def _ask(self, texts: list[str]) -> Rows:
        litellm, limit = load_litellm(), self.settings.timeout
        route = route_of(litellm, self.model, self.settings.api_base)
        try:
            answer = litellm.embedding(
                model=self.model,
                input=texts,
                encoding_format="float",
                timeout=limit,
                api_base=self.settings.api_base,
                api_key=route.key,
                num_retries=0,
                max_retries=0,
                drop_params=True,
            )
        except Exception as error:
            # litellm raises whatever its providers' code raises.
            raise classify(replace(fault_of(error), waited=limit), route.callee, datetime.now(UTC)) from error
        return self._read(answer, len(texts))

    def _read(self, answer: Any, count: int) -> Rows:
        import numpy as np

        try:
            rows = np.asarray([row["embedding"] for row in sorted(answer.data, key=lambda r: r["index"])], np.float32)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            why = f"no list of vectors came back ({error!r}); is it an embedding model?"
            raise ModelFault(f"{self.model}: {why}") from error
        if rows.ndim != 2 or len(rows) != count or not np.isfinite(rows).all():
            raise ModelFault(f"{self.model}: {rows.shape} numbers for {count} texts; is it an embedding model?")
        return rows


def _close_connections() -> None:
    """Of litellm's blocking clients, which texts are embedded with alone; a closed one must not be found again."""
    cache = load_litellm().in_memory_llm_clients_cache
    for key, client in [*cache.cache_dict.items()]:
        close = getattr(client, "close", None)
        if close is not None and not iscoroutinefunction(close):
            cache.delete_cache(key)
            close()
