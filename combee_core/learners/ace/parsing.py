"""Answers to nouns. What one item lacks costs that item alone, and it is listed; numbers become trace ids here."""

from __future__ import annotations

import json
import re
from typing import Any

from combee_core.errors import AnswerMalformed
from combee_core.learners.ace.cite import Evidence, cite
from combee_core.learners.ace.operations import (
    bare,
    numbers_of,
    read_operation,
    read_operations,
    refuse,
    texts_of,
    wording,
)
from combee_core.playbook import Playbook
from combee_core.ports import Solution
from combee_core.types import BulletTag, Delta, Group, Operation, Reflection, SetAside, Trajectory

_NO_INSIGHT = frozenset({"none", "null", "n/a", "na", "nothing", "no insight", "no new insight", "-", '""'})
_VERDICTS = ("helpful", "harmful", "neutral")


def solution(data: Any) -> Solution:
    """The generator's answer. Raises `AnswerMalformed` without a final answer."""
    if not isinstance(data, dict) or data.get("final_answer") is None:
        raise AnswerMalformed("the generator's answer has no final_answer")
    cited = data.get("bullet_ids")
    listed = cited if isinstance(cited, list) else re.split(r"[,\s]+", _as_text(cited))
    ids = dict.fromkeys(filter(None, (bare(_as_text(i)) for i in listed)))
    return Solution(_as_text(data["final_answer"]), tuple(ids), _as_text(data.get("reasoning")))


def reflection(data: Any, trajectory: Trajectory, echoes: frozenset[str] = frozenset()) -> Reflection:
    """The reflector's answer; `echoes` are texts of the prompt's own example.

    Raises `AnswerMalformed` if it does not say whether there is an insight, or gives back the example.
    """
    if not isinstance(data, dict) or "key_insight" not in data:
        raise AnswerMalformed("the reflector's answer has no key_insight (an empty one would mean: nothing learned)")
    tags, strange = _tags(data.get("bullet_tags"), f"reflect-{trajectory.trace_id}")
    insight = _as_text(data["key_insight"])
    if insight in echoes:
        raise AnswerMalformed("the reflector gave back the prompt's example as its insight").about(insight)
    return Reflection(
        trace_id=trajectory.trace_id,
        key_insight="" if insight.lower().rstrip(".") in _NO_INSIGHT else insight,
        reasoning=_as_text(data.get("reasoning")),
        error_identification=_as_text(data.get("error_identification")),
        root_cause_analysis=_as_text(data.get("root_cause_analysis")),
        correct_approach=_as_text(data.get("correct_approach")),
        tags=tags,
        set_aside=strange,
        outcome=trajectory.outcome,
    )


def _as_text(value: Any) -> str:
    """A text as it is, nothing for null and for what is empty, anything else as JSON."""
    if isinstance(value, str):
        return value.strip()
    return "" if value is None or value in ([], {}) else json.dumps(value, ensure_ascii=False)


def _tags(raw: Any, where: str) -> tuple[tuple[BulletTag, ...], tuple[SetAside, ...]]:
    tags, strange = [], []
    for item in raw if isinstance(raw, list) else [raw] if raw else []:
        pair = item if isinstance(item, dict) else {}
        bullet_id, word = bare(_as_text(pair.get("id"))), _as_text(pair.get("tag")).lower()
        if bullet_id and word in _VERDICTS:
            tags.append(BulletTag.model_validate({"bullet_id": bullet_id, "tag": word}))
        else:
            strange.append(refuse(item, "not a bullet tag", where))
    return tuple(tags), tuple(strange)


def curated(data: Any, group: Group, state: Playbook, echoes: frozenset[str] = frozenset()) -> Delta:
    """The curator's operations with the trace ids of the reflections that they name; `echoes` are texts of the
    prompt's own example, which are set aside.

    Raises `AnswerMalformed` without a list of operations.
    """
    texts = texts_of(state)
    shown = [Evidence(entry.trace_id, entry.key_insight) for entry in group.entries]
    operations, set_aside = [], []
    for raw in read_operations(data):
        op = read_operation(raw, texts, group.name)
        if isinstance(op, Operation) and op.text in echoes:
            op = refuse(raw, "gives back the prompt's example", group.name)
        if isinstance(op, SetAside):
            set_aside.append(op)
            continue
        numbers, strange = numbers_of(raw, len(shown), "r", group.name)
        set_aside.extend(strange)
        cited = cite(wording(op), [shown[number - 1].key for number in numbers], shown)
        operations.append(op.model_copy(update={"sources": tuple(sorted(cited.keys)), "inferred": cited.inferred}))
    return Delta(operations=tuple(operations), set_aside=tuple(set_aside))
