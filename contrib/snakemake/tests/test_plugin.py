"""The tests that Snakemake has for plugins of storage, and a workflow; tests/suites/adapters starts a server and sets PTCP_URL,
PTCP_FINGERPRINT and PTCP_ROOT, the served directory."""

import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any, Optional, Type

import ptcp
import pytest
from snakemake_interface_storage_plugins.settings import StorageProviderSettingsBase
from snakemake_interface_storage_plugins.storage_provider import StorageProviderBase
from snakemake_interface_storage_plugins.tests import TestStorageBase
from snakemake_storage_plugin_ptcp import StorageProvider, StorageProviderSettings

URL, FINGERPRINT, ROOT = (os.environ[n] for n in ("PTCP_URL", "PTCP_FINGERPRINT", "PTCP_ROOT"))


class Own(TestStorageBase):
    __test__ = False
    files_only = False
    touch = True
    name = "out.txt"

    def get_query(self, tmp_path: Path) -> str:
        return f"{URL}/{uuid.uuid4()}/{self.name}"

    def get_query_not_existing(self, tmp_path: Path) -> str:
        return f"{URL}/{uuid.uuid4()}/none"

    def get_storage_provider_cls(self) -> Type[StorageProviderBase]:
        return StorageProvider

    def get_storage_provider_settings(self) -> Optional[StorageProviderSettingsBase]:
        return StorageProviderSettings(fingerprint=FINGERPRINT, streams=2)


class TestFiles(Own):
    __test__ = True


class TestOddNames(Own):
    __test__ = True
    name = "a b*[c]?é%25.txt"


@pytest.fixture
def tree(tmp_path: Path) -> Any:
    folder = Path(ROOT) / str(uuid.uuid4())
    folder.mkdir()
    test = Own()
    return folder, f"{URL}/{folder.name}", lambda query: test._get_obj(tmp_path, query)


def test_one_form_of_each_url(tree: Any) -> None:
    _, url, obj = tree
    assert {obj(url + form).query for form in ("/a/b", "//a//b", "/a/./b/", "/x/../a/b")} == {url + "/a/b"}
    for query in "ptcp://h", "ptcp://h/", "ptcp:///x", "http://h/x", "ptcp://h/a/../b":
        assert not StorageProvider.is_valid_query(query), query
    assert StorageProvider.is_valid_query("ptcp://h:7811/{sample}.bam")


def test_what_links_lead_to(tree: Any) -> None:
    folder, url, obj = tree
    (folder / "file").write_text("four")
    os.utime(folder / "file", (1e9, 1e9))
    (folder / "sub").mkdir()
    for name, target in [("link", "sub/../file"), ("dir", "sub"), ("loose", "none"), ("loop", "loop"), ("sub/up", "../link")]:
        (folder / name).symlink_to(target)
    for name in "link", "sub/up":
        assert (obj(f"{url}/{name}").size(), obj(f"{url}/{name}").mtime()) == (4, 1e9), name
    assert [obj(f"{url}/{n}").exists() for n in ("dir", "loose", "loop")] == [True, False, False]
    with pytest.raises(FileNotFoundError):
        obj(url + "/loose").size()
    o = obj(url + "/link")
    o.local_path().parent.mkdir(parents=True, exist_ok=True)
    o.retrieve_object()
    assert o.local_path().read_text() == "four" and not o.local_path().is_symlink()


def test_a_directory_replaces_the_former_one(tree: Any) -> None:
    folder, url, obj = tree
    o = obj(url + "/out")
    (folder / "out").mkdir()
    (folder / "out" / "old").write_text("old")
    (folder / "beside").write_text("stays")
    o.local_path().mkdir(parents=True)
    (o.local_path() / "new").write_text("new")
    o.store_object()
    assert sorted(p.name for p in (folder / "out").iterdir()) == [".snakemake_timestamp", "new"]
    assert (folder / "beside").exists()
    assert o.local_footprint() >= 3 and o.size() == 0
    before = o.mtime()
    os.utime(folder / "out", (1, 1))
    assert o.mtime() == before


def test_lists_what_wildcards_can_be(tree: Any) -> None:
    folder, url, obj = tree
    for name in "a.bam", "x/b.bam", "x/50%.bam":
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    (folder / os.fsdecode(b"\xff.bam")).touch()
    found = set(obj(url + "/{sample}.bam").list_candidate_matches())
    assert found == {f"{url}/{n}" for n in ("a.bam", "x", "x/b.bam", "x/50%25.bam")}
    assert set(obj(url + "/x/b{s}.bam").list_candidate_matches()) == {f"{url}/x/b.bam", f"{url}/x/50%25.bam"}
    assert list(obj(url + "/none/{s}").list_candidate_matches()) == []
    assert obj(url + "/x/50%25.bam").exists()


def test_failures_are_errors(tree: Any) -> None:
    _, url, obj = tree
    o = obj("ptcp://127.0.0.1:1/x")
    with pytest.raises(ptcp.ConnectError):
        o.exists()


def test_a_workflow(tree: Any, tmp_path: Path) -> None:
    folder, url, _ = tree
    for sample in "ab":
        (folder / "raw").mkdir(exist_ok=True)
        (folder / "raw" / f"{sample}.txt").write_text(sample)
    (tmp_path / "Snakefile").write_text(f'''
storage ptcp:
    provider="ptcp",
    fingerprint="{FINGERPRINT}"

SAMPLES, = glob_wildcards(storage.ptcp("{url}/raw/{{sample}}.txt"))

rule all:
    input: storage.ptcp("{url}/sum/all.txt")

rule upper:
    input: storage.ptcp("{url}/raw/{{sample}}.txt")
    output: storage.ptcp("{url}/upper/{{sample}}.txt")
    shell: "tr a-z A-Z <{{input}} >{{output}}"

rule join:
    input: [storage.ptcp(f"{url}/upper/{{s}}.txt") for s in sorted(SAMPLES)]
    output: storage.ptcp("{url}/sum/all.txt")
    shell: "cat {{input}} >{{output}}"
''')
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--directory", os.fspath(tmp_path), "-s", os.fspath(tmp_path / "Snakefile")]
    first = subprocess.run(command, capture_output=True, text=True)
    assert first.returncode == 0, first.stderr
    assert (folder / "sum" / "all.txt").read_text() == "AB"
    again = subprocess.run(command, capture_output=True, text=True)
    assert again.returncode == 0 and "Nothing to be done" in again.stderr, again.stderr
