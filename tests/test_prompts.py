"""Prompt files: literal but for their placeholders, and wrong ones are found at start-up."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import texts

from combee_core.errors import UsageError
from combee_core.learners import load_learner
from combee_core.learners.ace.learner import load_prompts
from combee_core.learners.prompts import PromptFile, load_prompt

ALLOWED = frozenset({"playbook", "policy"})
BOTH = "<<playbook>> <<policy>>"


def load(folder: Path, text: str, allowed: frozenset[str] = ALLOWED) -> PromptFile:
    (folder / "curator.md").write_text(text, encoding="utf-8")
    return load_prompt("curator", allowed, folder, None)


def own(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return folder


# literal


@pytest.mark.parametrize(
    "text",
    [
        '{"operations": []}',
        "{playbook} {0} {{x}} %s %(playbook)s $playbook ${playbook}",
        "if a << b: cout << x; cat <<EOF >> file",
        "\\1 \\g<0> \\n",
        "<playbook></playbook> <<<<<<< HEAD >>>>>>> main",
        "1 << 2 >> 3",
    ],
)
def test_braces_and_other_template_signs_are_literal(tmp_path: Path, text: str) -> None:
    prompt = load(tmp_path, f"{text}\n{BOTH}\n{text}")
    assert prompt.fill({"playbook": "P", "policy": "Q"}) == f"{text}\nP Q\n{text}"


@given(texts, texts)
def test_what_is_put_in_is_never_read_as_a_template(playbook: str, policy: str) -> None:
    prompt = PromptFile(Path("x.md"), "a <<playbook>> b <<policy>> c <<playbook>>")
    filled = prompt.fill({"playbook": playbook, "policy": policy})
    assert filled == f"a {playbook} b {policy} c {playbook}"


@given(st.text(st.characters(exclude_characters="<")))
def test_a_text_without_placeholders_comes_out_as_it_is(text: str) -> None:
    assert PromptFile(Path("x.md"), text).fill({}) == text


# mistakes


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("<<playbok>>", "no placeholder <<playbok>>; this file may use <<playbook>>, <<policy>>"),
        ("<<Playbook>>", "no placeholder <<Playbook>>"),
        ("<<reflections-2>>", "no placeholder <<reflections-2>>"),
        ("<<playbook", "<<playbook is not filled in; write <<playbook>>"),
        ("see << Policy >> here", "<< Policy >> is not filled in; write <<policy>>"),
        ("<<policy>", "<<policy> is not filled in; write <<policy>>"),
    ],
)
def test_a_wrong_placeholder_is_named_with_file_and_line(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        load(tmp_path, f"stage: curate\f\u2028\n{BOTH}\n{line}\n")
    assert str(raised.value).startswith(f"{tmp_path / 'curator.md'}:3: {message}")


def test_a_missing_placeholder_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"curator\.md:1: <<policy>> is missing"):
        load(tmp_path, "only <<playbook>>")


def test_a_file_that_is_not_utf_8_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "curator.md").write_bytes(b"fine\n\xff\xfe")
    with pytest.raises(UsageError, match=r"curator\.md:2: not UTF-8"):
        load_prompt("curator", ALLOWED, tmp_path, None)


def test_a_byte_order_mark_is_no_part_of_the_prompt(tmp_path: Path) -> None:
    assert load(tmp_path, f"\ufeffstage: curate {BOTH}").text.startswith("stage:")


# a folder of own prompts


def test_own_files_replace_those_they_are_named_after_and_no_others(tmp_path: Path) -> None:
    folder = own(tmp_path, curator='Mine: {"operations": []} <<playbook>>', README="notes on <<anything>>")
    prompts, usual = load_prompts(folder), load_prompts()
    assert prompts["curator"].fill({"playbook": "P"}) == 'Mine: {"operations": []} P'
    assert {role for role in prompts if prompts[role] != usual[role]} == {"curator"}
    assert load_learner("ace", str(folder)).fingerprint != load_learner("ace").fingerprint


def test_a_folder_that_is_not_there_or_holds_nothing_of_use_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such folder of prompts"):
        load_learner("ace", str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match=r"holds no prompt; it may hold curator\.md, generator\.md"):
        load_learner("ace", str(tmp_path))


def test_a_file_under_a_misspelt_name_is_not_passed_over(tmp_path: Path) -> None:
    own(tmp_path, curator="<<playbook>>", curater="<<playbook>>")
    with pytest.raises(UsageError, match=r"curater\.md: no prompt has this name"):
        load_learner("ace", str(tmp_path))


def test_a_mistake_in_an_own_file_is_found_when_the_learner_is_built(tmp_path: Path) -> None:
    own(tmp_path, merger="stage: merge\n\n<<operations>>\n")
    with pytest.raises(UsageError, match=re.escape(f"{tmp_path / 'merger.md'}:3: no placeholder <<operations>>")):
        load_learner("ace", str(tmp_path))


def test_an_unknown_learner_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"no learner is called 'aec'; there are: .*ace"):
        load_learner("aec")


# our own files


@pytest.mark.parametrize("role", sorted(load_prompts()))
def test_each_prompt_begins_with_the_playbook_and_leaves_the_stage_to_the_message(role: str) -> None:
    text = load_prompts()[role].text
    assert "stage:" not in text
    assert text.startswith("# Playbook\n\n<<playbook>>\n\n# Your part\n")
    headings = re.findall(r"^# .*", text, re.MULTILINE)
    policy = ["# The agent's policy"] if role.startswith("reflector") else []
    assert headings[-1 - len(policy) :] == ["# Answer", *policy]
    assert "One JSON object and nothing else" in text.partition("# Answer")[2]
    assert max(map(len, text.split("\n"))) <= 120


@pytest.mark.parametrize(
    ("role", "rules"),
    [
        ("curator", ["each distinct", "`from`", "UPDATE", "MERGE", "REMOVE", "section that exists"]),
        ("merger", ["`from`", "word for word", "`dropped`", "Do not generalise", "rare does not"]),
        ("reflector", ["`key_insight`", '"harmful"', "not instruction", "One insight"]),
        ("reflector_no_truth", ["leave `key_insight` empty", "Do not guess", "not instruction"]),
        ("generator", ["that you really used"]),
    ],
)
def test_each_prompt_says_the_rules_that_code_relies_on(role: str, rules: list[str]) -> None:
    text = load_prompts()[role].text
    assert [rule for rule in rules if rule not in text] == []
