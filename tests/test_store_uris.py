"""From a URI to a store: which forms are understood, and what is said about the others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from combee_core.adapters.stores import open_store
from combee_core.errors import UsageError

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file://./combee-store", "here/combee-store"),
        ("file://../beside", "beside"),
        ("file://.", "here"),
        ("file:./x", "here/x"),
        ("combee-store", "here/combee-store"),
        ("./combee-store/", "here/combee-store"),
        ("a%20b", "here/a%20b"),
        ("file://./a%20b", "here/a b"),
        ("file://./Tr%C3%A4ume", "here/Träume"),
        ("FILE://./x", "here/x"),
    ],
)
def test_folders_relative_to_here(uri: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    store = open_store(uri)
    assert store.uri == (tmp_path / path).as_uri()
    store.create("k", b"x")
    assert (tmp_path / path / "k").read_bytes() == b"x"


@pytest.mark.parametrize(
    ("uri", "normal"),
    [
        ("file:///var/store/", "file:///var/store"),
        ("file:///var//store/../x", "file:///var/x"),
        ("file:/var/store", "file:///var/store"),
        ("file://localhost/var/store", "file:///var/store"),
        ("/var/store", "file:///var/store"),
        ("/var/a b#c?d", "file:///var/a%20b%23c%3Fd"),
        ("file:///var/a%20b%23c%3Fd", "file:///var/a%20b%23c%3Fd"),
        ("memory://one", "memory://one"),
        ("memory://one/", "memory://one"),
        ("s3://bucket", "s3://bucket"),
        ("s3://bucket/", "s3://bucket"),
        ("s3://bucket/team/night/", "s3://bucket/team/night"),
        ("s3://my.bucket-1/a%20b", "s3://my.bucket-1/a%20b"),
    ],
)
def test_a_uri_has_one_normal_form_that_opens_the_same_store(uri: str, normal: str) -> None:
    assert open_store(uri).uri == normal
    assert open_store(normal).uri == normal


@pytest.mark.parametrize(
    ("uri", "way_out"),
    [
        ("", "file://./folder"),
        ("  ", "file://./folder"),
        ("file://", "file://./"),
        ("file://store", "file://./store"),
        ("file://host/store", "file://./host/store"),
        ("memory://", "memory://name"),
        ("s3://", "s3://bucket/prefix"),
        ("s3:///prefix", "s3://bucket/prefix"),
        ("s3://user:secret@bucket/x", "s3://bucket/prefix"),
        ("s3://bucket/../other", "not allowed"),
        ("s3://bucket//x", "single slashes"),
        ("gs://bucket/x", "unknown kind 'gs'"),
        ("http://127.0.0.1/x", "unknown kind 'http'"),
    ],
)
def test_another_form_is_refused_with_the_way_out(uri: str, way_out: str) -> None:
    with pytest.raises(UsageError) as refused:
        open_store(uri)
    assert way_out in str(refused.value)


def test_memory_stores_of_one_name_are_one_and_of_two_names_are_two() -> None:
    open_store("memory://twin").create("k", b"x")
    assert open_store("memory://twin").list("") == ["k"]
    assert open_store("memory://other-twin").list("") == []


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def test_opening_a_folder_loads_no_vendor_library() -> None:
    code = """
import sys
from combee_core.adapters.stores import open_store
open_store("file://./x"), open_store("s3://bucket/x")
print(sorted({"s3fs", "fsspec", "botocore", "aiohttp"} & set(sys.modules)))
"""
    assert run_python(code) == "[]\n"


def test_without_s3fs_the_error_names_the_extra() -> None:
    code = """
import sys
sys.modules["s3fs"] = None
from combee_core.adapters.stores import open_store
from combee_core.errors import UsageError
try:
    open_store("s3://bucket/x").read("k")
except UsageError as error:
    print(error)
"""
    assert run_python(code) == "s3://bucket needs s3fs: pip install 'combee-pipeline[s3]'\n"
