"""What others say of our prompts, without what they quote of them: error texts end in logs, traces must not."""

from __future__ import annotations

from collections.abc import Sequence

_WORDS, _LETTERS = 4, 14
"""Of a stretch that counts as a quotation: so many words, or so many letters in fewer words."""


def without_echo(text: str, asked: str) -> str:
    """`text` in one line, with … for every stretch of it, of some words or one long one, that stands in `asked`."""
    words, source, kept = text.split(), " ".join(asked.split()), list[str]()
    while words:
        count = next((n for n, _ in enumerate(words) if _bare(words[: n + 1]) not in source), len(words))
        is_echo = count >= _WORDS or len(_bare(words[:count])) >= _LETTERS
        kept.append("…" if is_echo else words[0])
        words = words[count if is_echo else 1 :]
    return " ".join(kept)


def _bare(words: Sequence[str]) -> str:
    """Words without the quotation marks and brackets round them."""
    return " ".join(words).strip("\"'`“”‘’()[]{}<>.,:;!?")
