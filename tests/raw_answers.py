"""Raw answers of a model, and how they are read."""

from __future__ import annotations

import json

from combee_core.answers import read_answer
from combee_core.calls import Completion

ADD = {"type": "ADD", "section": "formulas", "content": "for ROE answer 20, not 0.2"}
OTHER = {"type": "ADD", "section": "formulas", "content": "use net income"}
OBJECT = {"operations": [ADD]}
BARE = json.dumps(OBJECT)


def read(text: str | None, **fields: object) -> object:
    """The JSON of an answer with this text."""
    return read_answer(Completion.model_validate({"text": text, **fields}))
