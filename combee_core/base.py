"""What every noun is made of."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import BaseModel, ConfigDict


class Noun(BaseModel):
    """Base of every record: frozen, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def sha256(*parts: Any) -> str:
    """Hex digest of JSON-able parts, equal in every process."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def estimate(text: str) -> int:
    """Tokens in `text`, estimated: UTF-8 bytes divided by four, rounded up."""
    return -(-len(text.encode("utf-8", "replace")) // 4)
