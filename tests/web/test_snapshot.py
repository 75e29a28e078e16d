"""Maps without a service: one file that requests nothing, and a page on a port of this machine."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from playwright.sync_api import expect

from tests.eventually import eventually
from tests.web.conftest import Visit
from tests.web.page_service import CLUSTER, ROOT, PageService, gang

Open = Callable[..., Visit]
FLEET = ROOT / "examples" / "13-gb200-fleet" / "snapshot.json"
NASTY = "</script><img src=x onerror=alert(1)>"
PATIENCE_S = 120.0


def written(folder: Path, *arguments: str | Path) -> Path:
    """Return the file with what a command prints."""
    file = folder / "map.html"
    command = [sys.executable, "-m", "coterie", *map(str, arguments), "-o", "html"]
    done = subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE_S)
    file.write_bytes(done.stdout)
    return file


@contextmanager
def shown(*arguments: str | Path, **environment: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run `coterie map --web`; yield the address that it prints."""
    kept = {name: value for name, value in os.environ.items() if name not in {"BROWSER", "DISPLAY", "WAYLAND_DISPLAY"}}
    process = subprocess.Popen(
        [sys.executable, "-m", "coterie", "map", *map(str, arguments), "--web"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**kept, **environment},
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip(), process
    finally:
        process.kill()
        process.wait(PATIENCE_S)
        process.stdout.close()


@pytest.mark.usefixtures("built_page")
def test_a_file_shows_the_map_of_a_snapshot_and_requests_nothing(tmp_path: Path, visit: Open) -> None:
    file = written(tmp_path, "map", FLEET, "--workload", "pretrain-70b")
    seen = visit(file.as_uri())
    page = seen.page
    expect(page.locator(".task.lit")).to_have_count(12)
    expect(page.get_by_role("status").filter(has_text="snapshot, read-only")).to_be_visible()
    expect(page.get_by_text("snapshot.json · written")).to_be_visible()
    expect(page.get_by_text("guessed from well-known labels")).to_be_visible()
    expect(page.get_by_role("link", name="Open the workflow")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.locator(".task.lit")).to_have_count(0)
    page.get_by_placeholder("Filter").fill("cordoned")
    expect(page.locator(".node:not(.dim)")).to_have_count(2)
    expect(page).to_have_url(re.compile("#filter=cordoned$"))
    assert seen.requests == [file.as_uri()]
    assert seen.errors == []


@pytest.mark.usefixtures("built_page")
def test_an_address_with_a_selection_shows_it(tmp_path: Path, visit: Open) -> None:
    page = visit(f"{written(tmp_path, 'map', FLEET).as_uri()}#node=r03-n05&view=table").page
    expect(page.get_by_label("Selection")).to_contain_text("cordoned: takes no new work")
    expect(page.get_by_role("table")).to_be_visible()


@pytest.mark.usefixtures("built_page")
def test_an_overfull_node_has_the_gpus_it_has_and_a_sign(tmp_path: Path, visit: Open) -> None:
    cluster = tmp_path / "cluster.yaml"
    pods = "pods:\n- {owner: first, node: w1-n1, gpu: 7}\n- {owner: second, node: w1-n1, gpu: 1}\n"
    cluster.write_text(CLUSTER + pods, encoding="utf-8")
    page = visit(written(tmp_path, "map", cluster).as_uri()).page
    node = page.get_by_role("button", name="node w1-n1,")
    expect(node).to_have_accessible_name(re.compile("overfull, 8 of 4 GPUs used: first 7, second 1$"))
    expect(node.locator(".gpu")).to_have_count(4)
    expect(node.locator("[data-task]")).to_have_count(2)
    expect(page.locator(".marks.overfull .sign")).to_have_text("^")
    expect(page.get_by_text("overfull: pods hold more GPUs than it has")).to_be_visible()
    node.click()
    expect(page.get_by_label("Selection")).to_contain_text("8 of 4 used, 0 free")
    expect(page.get_by_label("Selection")).to_contain_text("ready; overfull: its tasks hold more GPUs than it has")
    page.get_by_placeholder("Filter").fill("overfull")
    expect(page.locator(".node:not(.dim)")).to_have_count(1)


@pytest.mark.usefixtures("built_page")
def test_names_with_markup_are_text(tmp_path: Path, visit: Open) -> None:
    cluster = tmp_path / "cluster.yaml"
    pods = f"pods:\n- {{owner: '{NASTY}', node: w1-n1, gpu: 4}}\n"
    cluster.write_text(CLUSTER + pods, encoding="utf-8")
    seen = visit(written(tmp_path, "map", cluster).as_uri())
    expect(seen.page.get_by_label("Holders")).to_contain_text(NASTY)
    assert seen.page.locator("img").count() == 0
    assert seen.errors == []


def claimed() -> str:
    """Return two nodes as kubectl lists them; a pod on the first has a claim to its NVLink channel."""
    nodes = [
        {
            "kind": "Node",
            "metadata": {"name": name, "labels": {"nvidia.com/gpu.clique": "8c2f4d1e-5b7a-4c39-9d26-0f1e2a3b4c5d.0"}},
            "status": {"allocatable": {"nvidia.com/gpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}]},
        }
        for name in ("n1", "n2")
    ]
    claim = {"name": "compute-domain", "resourceClaimTemplateName": "train-channel"}
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "2"}}}
    pods = [
        {
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"nodeName": node, "containers": [container], "resourceClaims": claims},
            "status": {"phase": "Running"},
        }
        for name, node, claims in (("train-0", "n1", [claim]), ("other-0", "n2", []))
    ]
    return json.dumps({"kind": "List", "items": [*nodes, *pods]})


@pytest.mark.usefixtures("built_page")
def test_a_node_whose_nvlink_channel_is_taken_is_told_apart(tmp_path: Path, visit: Open) -> None:
    cluster = tmp_path / "cluster.json"
    cluster.write_text(claimed(), encoding="utf-8")
    seen = visit(written(tmp_path, "map", cluster).as_uri())
    page = seen.page
    expect(page.locator(".marks .channel")).to_have_text(["◆"])
    expect(page.get_by_label("Holders")).to_contain_text("◆ NVLink channel taken")
    expect(page.get_by_role("button", name="node n1,")).to_have_accessible_name(re.compile("NVLink channel taken"))
    expect(page.get_by_role("button", name="node n2,")).not_to_have_accessible_name(re.compile("channel"))
    page.get_by_placeholder("Filter").fill("channel")
    expect(page.locator(".node:not(.dim)")).to_have_count(1)
    page.locator(".node:not(.dim)").click(position={"x": 10, "y": 5})
    expect(page.get_by_label("Selection")).to_contain_text("its NVLink channel is taken")
    assert seen.errors == []


@pytest.mark.usefixtures("built_page")
def test_a_snapshot_is_shown_on_this_machine_alone_until_it_is_interrupted(tmp_path: Path, visit: Open) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n', encoding="utf-8")
    browser.chmod(0o755)
    with shown(FLEET, BROWSER=f"{browser} %s") as (url, process):
        assert url.startswith("http://127.0.0.1:")
        eventually(lambda: opened.exists() and opened.read_text(encoding="utf-8").strip() == url)
        seen = visit(url)
        expect(seen.page.locator(".node").first).to_be_visible()
        assert [each for each in seen.requests if not each.startswith(url)] == []
        assert seen.errors == []
        parts = urlsplit(url)
        assert httpx2.get(f"http://{parts.netloc}/").status_code == 404
        assert httpx2.get(url, headers={"host": "evil.example"}).status_code == 404
        assert httpx2.post(url).status_code == 501
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0


def test_a_pool_of_a_service_is_written_as_one_file(served: PageService, tmp_path: Path, visit: Open) -> None:
    ident = served.run(gang("kept", 2))
    file = written(tmp_path, "pool", "map", "training", "--level", "zone", "--server", served.url)
    served.cancel(ident)
    page = visit(file.as_uri()).page
    page.locator(".node").first.wait_for()
    names = page.locator(".domain .name").evaluate_all("all => all.map(one => one.firstChild.textContent)")
    assert names == ["zone east", "zone west"]
    page.locator(f'[data-task="{ident}/w0"]').click()
    expect(page.locator(".task.lit")).to_have_count(2)
