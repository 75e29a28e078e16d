"""Calls of `coterie operator` that cannot work: all faults are reported at once, in plain words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import call
from tests.cli.sample_files import text, topology


def test_a_missing_kubeconfig_and_wrong_addresses_are_reported_together(tmp_path: Path) -> None:
    words = ("--webhook", "nonsense", "--listen", "x:99999", "--own", "PodCliqueSets", "--allowed-domain", "zone,rack")
    done = call("operator", *words, cwd=tmp_path, KUBECONFIG=str(tmp_path / "absent"))

    assert done.code == 2
    for said in (
        '--webhook takes HOST:PORT, not "nonsense"',
        "--listen takes",
        "PodCliqueSets",
        "no kubeconfig",
        '"zone,rack"',
    ):
        assert said in done.err
    assert "or run it in a cluster as a service account" in done.err
    assert "--listen 127.0.0.1:9443. " in done.err
    assert "kubectl get nodes" not in done.err


def test_a_registration_of_a_manifest_needs_a_certificate_and_is_never_removed(tmp_path: Path) -> None:
    words = ("--webhook-configuration", "Coterie/x", "--webhook-cleanup")
    done = call("operator", *words, cwd=tmp_path, KUBECONFIG=str(tmp_path / "absent"))

    assert done.code == 2
    for said in (
        'the name of a ValidatingWebhookConfiguration, not "Coterie/x"',
        "--webhook-configuration needs --webhook and --webhook-certificates",
        "--webhook-cleanup cannot be used with --webhook-configuration",
    ):
        assert said in done.err


@pytest.mark.parametrize("name", ["zone,rack", "", " zone", "Zone"])
def test_a_name_that_no_level_can_have_is_refused_as_allowed_domain(tmp_path: Path, name: str) -> None:
    (tmp_path / "t.yaml").write_text(text(topology()))
    done = call("validate", "t.yaml", "--allowed-domain", name, cwd=tmp_path)

    assert done.code == 2
    assert "cannot be the domain of a level" in done.err
    assert "Example: --allowed-domain zone --allowed-domain rack" in done.err


def test_an_unknown_context_is_named_with_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("contexts: [{name: lab, context: {cluster: c, user: u}}]\n")
    done = call("operator", "--context", "lob", cwd=tmp_path, KUBECONFIG=str(tmp_path / "config"))

    assert done.code == 4
    assert 'there is no context "lob"' in done.err


def test_without_a_current_context_the_option_is_named(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("contexts: [{name: lab, context: {cluster: c, user: u}}]\n")
    done = call("operator", cwd=tmp_path, KUBECONFIG=str(tmp_path / "config"))

    assert done.code == 2
    assert "--context NAME" in done.err
