"""`combee playbook`: show, explain, compare, render and import playbooks."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from combee_core.cli import options
from combee_core.errors import UsageError


def add(commands: Any) -> None:
    """Register the command and its actions."""
    parser: argparse.ArgumentParser = commands.add_parser("playbook", help="show, explain, compare, import playbooks")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    show = _action(actions, "show", _show, "the bullets with their sources")
    show.add_argument("--version", type=int, metavar="N", help="an older version")
    why = _action(actions, "why", _why, "where a bullet comes from")
    why.add_argument("bullet", metavar="BULLET")
    difference = _action(actions, "diff", _diff, "what changed between two versions")
    difference.add_argument("old", nargs="?", type=int, metavar="OLD", help="by default the version before NEW")
    difference.add_argument("new", nargs="?", type=int, metavar="NEW", help="by default the latest")
    render = _action(actions, "render", _render, "the text that agents read")
    render.add_argument("--version", type=int, metavar="N", help="an older version")
    render.add_argument("--no-counters", action="store_true", help="without helpful= and harmful=")
    importing = actions.add_parser("import", help="publish a playbook from ACE's text form or our JSON")
    importing.add_argument("file", metavar="FILE")
    importing.add_argument("--playbook", required=True, metavar="NAME")
    options.add_store(importing)
    importing.set_defaults(command=_import)


def _action(actions: Any, name: str, command: Any, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, help=text)
    parser.add_argument("name", metavar="NAME", help="the playbook")
    options.add_store(parser)
    parser.set_defaults(command=command)
    return parser


def _open(args: argparse.Namespace, number: int | None = None) -> Any:
    from combee_core.adapters.stores import open_store
    from combee_core.versions import Versions

    versions = Versions(open_store(args.store), getattr(args, "name", None) or args.playbook)
    found = versions.latest() if number is None else versions.get(number)
    if found is None:
        raise UsageError(
            f"there is no playbook {versions.playbook} in {versions.store.uri}; "
            "`combee learn` or `combee playbook import` makes one"
        )
    return versions, found


def _playbook(version: Any) -> Any:
    from combee_core.playbook import Playbook

    return Playbook.model_validate(version.state)


def _show(args: argparse.Namespace) -> int:
    from combee_core import showing
    from combee_core.cli.show import bullet_lines

    _, version = _open(args, args.version)
    playbook = _playbook(version)
    data = showing.as_data(version, playbook)
    if args.json:
        print(json.dumps(data, ensure_ascii=False))
        return 0
    print(f"{version.playbook}: version {version.version}, digest {version.digest[:12]}, about {data['tokens']} tokens")
    for section in filter(lambda section: section.bullets, playbook.sections):
        print(f"\n## {section.name}")
        for bullet in section.bullets:
            print("\n".join(bullet_lines(bullet)))
    return 0


def _why(args: argparse.Namespace) -> int:
    from combee_core import showing

    versions, version = _open(args)
    found = showing.explain(versions, version, _playbook(version), args.bullet.strip("[]"))
    print(json.dumps(found, ensure_ascii=False) if args.json else "\n".join(showing.explanation(found)))
    return 0


def _diff(args: argparse.Namespace) -> int:
    from combee_core import showing
    from combee_core.diff import diff
    from combee_core.playbook import Playbook

    versions, new = _open(args, args.new)
    number = args.old if args.old is not None else new.parent
    old = _playbook(versions.get(number)) if number else Playbook()
    difference = diff(old, _playbook(new))
    if args.json:
        print(json.dumps({"old": number, "new": new.version, **difference.model_dump(mode="json")}, ensure_ascii=False))
    else:
        print("\n".join(showing.difference(number, new.version, difference)))
    return 0


def _render(args: argparse.Namespace) -> int:
    from combee_core.playbook_text import render

    _, version = _open(args, args.version)
    text = render(_playbook(version), counters=not args.no_counters)
    if args.json:
        print(json.dumps({"playbook": version.playbook, "version": version.version, "text": text}, ensure_ascii=False))
    else:
        sys.stdout.write(text)
    return 0


def _import(args: argparse.Namespace) -> int:
    from combee_core.adapters.stores import open_store
    from combee_core.importing import import_playbook
    from combee_core.versions import Versions

    try:
        text = Path(args.file).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{args.file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{args.file}: not a text in UTF-8") from error
    version, added = import_playbook(text, Path(args.file).name, Versions(open_store(args.store), args.playbook))
    shown = {
        "playbook": version.playbook,
        "version": version.version,
        "digest": version.digest,
        "imported": added,
    }
    line = f"{version.playbook}: version {version.version} with {added} imported bullets, digest {version.digest[:12]}"
    print(json.dumps(shown) if args.json else line)
    return 0
