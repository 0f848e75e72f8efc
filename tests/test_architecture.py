"""The rules of the layout, read off the syntax trees."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CODE = sorted(p for folder in ("combee_core", "tasks", "flows") for p in (ROOT / folder).rglob("*.py"))
NOUNS = {"types", "playbook", "errors", "config", "ports", "records", "sizes"}
VERBS = {"ingest", "rollout", "reflect", "shuffle", "curate", "merge", "batch_size"}
VENDORS = {"matplotlib", "s3fs", "fsspec", "botocore", "aiobotocore", "litellm", "httpx", "requests", "urllib.request"}
SERVER = {"starlette", "uvicorn"}


def name_of(path: Path) -> str:
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return module.removesuffix(".__init__")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(node: ast.AST) -> Iterator[str]:
    """Modules that an import statement names; `from a import b` names `a.b` where that is a module, else `a`."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        for alias in node.names:
            inner = ROOT / Path(*node.module.split("."), alias.name)
            is_module = inner.with_suffix(".py").exists() or (inner / "__init__.py").exists()
            yield f"{node.module}.{alias.name}" if is_module else node.module


def imports(path: Path) -> set[str]:
    return {name for node in ast.walk(tree(path)) for name in imported(node)}


def top_level_imports(path: Path) -> set[str]:
    return {name for node in tree(path).body for name in imported(node)}


def touches(names: set[str], packages: set[str]) -> set[str]:
    return {name for name in names for package in packages if name == package or name.startswith(package + ".")}


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (n for n in ast.walk(tree(path)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("path", CODE, ids=name_of)
def test_core_knows_no_task_and_tasks_know_no_flow(path: Path) -> None:
    module = name_of(path)
    forbidden = {"combee_core": {"prefect", "tasks", "flows"}, "tasks": {"flows"}, "flows": set[str]()}
    assert not touches(imports(path), forbidden[module.split(".")[0]])


@pytest.mark.parametrize("path", CODE, ids=name_of)
def test_adapters_alone_touch_vendor_libraries(path: Path) -> None:
    module = name_of(path)
    if not module.startswith("combee_core.adapters."):
        assert not touches(imports(path), VENDORS)
    if not module.startswith("combee_core.simulation."):
        assert not touches(imports(path), SERVER)


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_a_verb_never_imports_a_verb(verb: str) -> None:
    others = {f"combee_core.{other}" for other in VERBS - {verb}}
    assert not touches(imports(ROOT / "combee_core" / f"{verb}.py"), others)


@pytest.mark.parametrize("noun", sorted(NOUNS))
def test_a_noun_imports_no_verb_and_no_adapter(noun: str) -> None:
    above = {f"combee_core.{verb}" for verb in VERBS} | {"combee_core.adapters", "combee_core.client"}
    assert not touches(imports(ROOT / "combee_core" / f"{noun}.py"), above)


def test_there_is_no_import_cycle() -> None:
    graph = {name_of(path): top_level_imports(path) for path in CODE}
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " → ".join((*trail, module))
        if module in graph and module not in done:
            for other in graph[module]:
                visit(other, (*trail, module))
            done.add(module)

    for module in graph:
        visit(module, ())


@pytest.mark.parametrize("path", CODE, ids=name_of)
def test_files_and_functions_are_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 300
    for function in functions(path):
        assert (function.end_lineno or 0) - function.lineno < 60, function.name
        arguments = function.args
        assert len(arguments.args + arguments.kwonlyargs + arguments.posonlyargs) <= 8, function.name


def test_the_median_function_has_ten_lines_and_the_median_file_a_hundred() -> None:
    lengths = sorted((f.end_lineno or 0) - f.lineno + 1 for path in CODE for f in functions(path))
    files = sorted(len(path.read_text(encoding="utf-8").splitlines()) for path in CODE)
    assert lengths[len(lengths) // 2] <= 10
    assert lengths[len(lengths) * 9 // 10] <= 30
    assert files[len(files) // 2] <= 100


def test_there_are_at_least_as_many_lines_of_tests_as_of_code() -> None:
    def lines(paths: list[Path]) -> int:
        return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)

    assert lines(sorted((ROOT / "tests").rglob("*.py"))) >= lines(CODE)


@pytest.mark.parametrize("path", [p for p in CODE if "flows" in p.parts], ids=name_of)
def test_flows_compose_and_define_no_type(path: Path) -> None:
    assert not [node for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)]


def test_the_iteration_flow_reads_like_the_figure() -> None:
    (iteration,) = functions(ROOT / "flows" / "iteration.py")
    assert (iteration.end_lineno or 0) - iteration.lineno < 40


def test_no_flow_file_hides_an_installed_package() -> None:
    stems = {path.stem for path in (ROOT / "flows").glob("*.py")} - {"__init__"}
    taken = sys.stdlib_module_names | set(packages_distributions()) | {"flows", "tasks"}
    assert not stems & taken
    assert not {"flows", "tasks"} & {path.stem for path in (ROOT / "tasks").glob("*.py")}
    assert (ROOT / "flows" / "__init__.py").exists()
    assert (ROOT / "tasks" / "__init__.py").exists()


@pytest.mark.parametrize("path", CODE, ids=name_of)
def test_the_environment_is_read_at_the_edge_alone(path: Path) -> None:
    reads = any(isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv") for node in ast.walk(tree(path)))
    edges = ("combee_core.adapters.", "combee_core.cli.", "tasks.results")
    assert not reads or name_of(path).startswith(edges)


@pytest.mark.parametrize("path", sorted((ROOT / "tests").rglob("*.py")), ids=lambda p: p.stem)
def test_tests_patch_nothing(path: Path) -> None:
    names = {n.attr for n in ast.walk(tree(path)) if isinstance(n, ast.Attribute)}
    assert not names & {"patch", "MagicMock", "setattr", "setitem"}
    assert not touches(imports(path), {"unittest.mock", "mock"})


def test_every_public_name_has_a_docstring() -> None:
    bare = []
    for path in CODE:
        nodes = [(node, node.name) for node in tree(path).body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
        bare += [f"{name_of(path)}.{name}" for node, name in nodes if name[0] != "_" and not ast.get_docstring(node)]
        bare += [name_of(path)] if not ast.get_docstring(tree(path)) and path.read_text().strip() else []
    assert not bare


def test_importing_the_library_loads_neither_prefect_nor_litellm() -> None:
    heavy = {"prefect", "litellm", "s3fs", "numpy", "scipy", "pandas", "matplotlib", "httpx", "starlette"}
    script = "import combee_core, combee_core.cli, sys; print(*sorted(m for m in sys.modules if '.' not in m))"
    loaded = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not heavy & set(loaded.stdout.split())


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys\nfrom combee_core.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print(*sorted(m for m in sys.modules if '.' not in m), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "learn" in done.stdout
    assert not {"prefect", "litellm", "s3fs", "numpy", "starlette", "uvicorn"} & set(done.stderr.split())


def test_the_wheel_holds_the_library_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    listed = subprocess.run([sys.executable, "-m", "zipfile", "-l", wheel], capture_output=True, text=True, check=True)
    tops = {line.split("/")[0].split()[0] for line in listed.stdout.splitlines()[1:]}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"combee_core"}
    assert "combee_core/learners/ace/curator.md" in listed.stdout
    assert "combee_core/py.typed" in listed.stdout


# Each name is spelled with a class of one letter, so that this file does not hold it.
STRANGE = re.compile(
    r"index[-]url|extra[-]index|files[.]pythonhosted|pypi[.]org/simple|/wor[k]/|/roo[t]/|# TEMPORAR[Y]|TOD[O]|FIXM[E]"
)


def test_no_file_speaks_of_a_workplace_a_registry_or_work_left_to_do() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tracked = [ROOT / name for name in listed.split("\0") if name and name != "LICENSE"]
    texts = {path: path.read_bytes().decode(errors="replace") for path in tracked if path.exists()}
    assert ROOT / "README.md" in texts
    assert not [(path.name, found[0]) for path, text in texts.items() if (found := STRANGE.search(text))]


def test_constraints_are_versions_without_addresses() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert lines
    for line in lines:
        assert "://" not in line
        assert "==" in line
