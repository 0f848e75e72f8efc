"""A playbook explained: as data for programs, as lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from combee_core.base import estimate
from combee_core.diff import Diff
from combee_core.errors import UsageError
from combee_core.playbook import Bullet, Playbook
from combee_core.playbook_text import render, render_bullet
from combee_core.versions import Version, Versions


def as_data(version: Version, playbook: Playbook) -> dict[str, Any]:
    """What `playbook show --json` prints. `tokens` is an estimate: UTF-8 bytes of the text form, divided by four."""
    return {
        "playbook": version.playbook,
        "version": version.version,
        "digest": version.digest,
        "tokens": estimate(render(playbook)),
        "sections": [{"name": s.name, "bullets": [_bullet(b) for b in s.bullets]} for s in playbook.sections],
    }


def _bullet(bullet: Bullet) -> dict[str, Any]:
    fields = {"id", "text", "helpful", "harmful", "sources", "created", "updated"}
    data = bullet.model_dump(mode="json", include=fields)
    return {**data, "origin": "import"} if bullet.origin == "import" else data


def explain(versions: Versions, version: Version, playbook: Playbook, bullet_id: str) -> dict[str, Any]:
    """Why a bullet exists: its changes, each with the version, run, model and traces behind it.

    Raises `UsageError` where the playbook has no such bullet.
    """
    bullet = playbook.find(bullet_id)
    if bullet is None:
        raise UsageError(f"playbook {version.playbook} has no bullet {bullet_id} in version {version.version}")
    behind = {v.version: v for v in versions.chain()}
    changes = []
    for change in bullet.history:
        made = behind.get(change.version)
        changes.append(
            {
                **change.model_dump(mode="json"),
                "run": made.run if made else "",
                "flow_run_id": made.flow_run_id if made else "",
                "models": list(made.models) if made else [],
                "as_of": made.as_of.isoformat() if made and made.as_of else None,
            }
        )
    note = behind[bullet.created].note if bullet.origin == "import" and bullet.created in behind else ""
    return {
        "playbook": version.playbook,
        "bullet": {**_bullet(bullet), "origin": bullet.origin},
        "note": note,
        "changes": changes,
        "votes": [counted.model_dump() for counted in bullet.counted],
    }


def explanation(found: dict[str, Any]) -> Iterator[str]:
    """`explain` as lines."""
    bullet = found["bullet"]
    yield render_bullet(Bullet.model_validate(bullet))
    if bullet["origin"] == "import":
        yield f"  {found['note'] or 'imported'} (version {bullet['created']})"
    for change in found["changes"]:
        day = f", day {change['as_of']}" if change["as_of"] else ""
        yield f"  version {change['version']}: {change['kind']} by {change['origin']}{day}"
        yield f"    from traces {', '.join(change['sources']) or 'none'}"
        if change["before"]:
            yield f"    before: {change['before']}"
        if change["models"]:
            yield f"    model {', '.join(change['models'])}; flow run {change['flow_run_id']}"
    for vote in found["votes"]:
        yield f"  tagged {vote['tag']} by {vote['trace_id']}"


def difference(old: int, new: int, changes: Diff) -> Iterator[str]:
    """A diff as lines."""
    yield f"version {old} → {new}"
    if changes.is_empty:
        yield "no difference"
    for bullet in changes.added:
        yield f"+ [{bullet.id}] {bullet.text}"
    for changed in changes.rewritten:
        yield f"~ [{changed.after.id}] {changed.before.text}"
        yield f"  → {changed.after.text}"
    for changed in changes.counted:
        before, after = changed.before, changed.after
        counters = f"helpful {before.helpful} → {after.helpful}, harmful {before.harmful} → {after.harmful}"
        yield f"# [{after.id}] {counters}, sources {len(before.sources)} → {len(after.sources)}"
    for bullet in changes.removed:
        yield f"- [{bullet.id}] {bullet.text}"
    for bullet in changes.moved:
        yield f"> [{bullet.id}] stands under another heading"
    yield from (f"+ ## {name}" for name in changes.sections_added)
    yield from (f"- ## {name}" for name in changes.sections_removed)
