"""`coterie operator`: an operator that runs until it is stopped, and the definitions of its kinds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from coterie.cli.commands.operator import OperatorCrdsOptions, OperatorOptions
from coterie.cli.inputs.allowed_domains import allowed_domain_problems
from coterie.cli.output.screen import show
from coterie.errors import CoterieError, NotFound, UsageError, did_you_mean
from coterie.frontends.admission import TargetCluster
from coterie.frontends.kubernetes.objects import is_subdomain
from coterie.json_log import log_as_json
from coterie.kube.kubeconfig import NoKubeconfig, choose
from coterie.operator.crds import definitions
from coterie.operator.endpoints import address_of
from coterie.operator.operator import run as run_operator
from coterie.operator.settings import OWNABLE, OperatorSettings


def run(options: OperatorOptions) -> None:
    """Run until interrupted."""
    problems = list(_problems(options))
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise UsageError(
            "; ".join(map(str, problems)),
            " ".join(dict.fromkeys(_sentence(each.hint) for each in problems if each.hint)),
        )
    log_as_json()
    settings = OperatorSettings(
        context=options.context,
        listen=options.listen,
        own=options.own,
        webhook=options.webhook,
        webhook_certificates=Path(options.webhook_certificates) if options.webhook_certificates else None,
        webhook_configuration=options.webhook_configuration,
        webhook_cleanup=options.webhook_cleanup,
        cluster=TargetCluster(
            off=frozenset(each.value for each in options.off), domains=frozenset(options.allowed_domains)
        ),
        lease_namespace=options.lease_namespace,
    )

    def started(address: str) -> None:
        if address:
            show([address])

    run_operator(settings, started)


def _sentence(hint: str) -> str:
    return hint if hint.endswith((".", "?")) else f"{hint}."


def _problems(options: OperatorOptions) -> Iterator[CoterieError]:
    """Yield everything that is wrong with a call, so that one correction is enough."""
    known = [kind.name for kind in OWNABLE]
    for name in options.own:
        if name not in known:
            hint = f"{did_you_mean(name, known)} Kinds are: {', '.join(known)}.".lstrip()
            yield UsageError(f'--own names no kind that an operator can own: "{name}"', hint)
    for option, text in (("--listen", options.listen), ("--webhook", options.webhook)):
        try:
            address_of(text or ":0", option)
        except UsageError as error:
            yield error
    yield from allowed_domain_problems(options.allowed_domains)
    yield from _configuration_problems(options)
    try:
        choose(options.context)
    except NoKubeconfig as error:
        yield UsageError(str(error), "Set KUBECONFIG to the right file, or run it in a cluster as a service account.")
    except NotFound as error:
        yield error
    except UsageError as error:
        yield UsageError(str(error), (error.hint or "").replace("context:NAME", "--context NAME"))


def _configuration_problems(options: OperatorOptions) -> Iterator[CoterieError]:
    name = options.webhook_configuration
    if not name:
        return
    if not is_subdomain(name):
        yield UsageError(
            f'--webhook-configuration takes the name of a ValidatingWebhookConfiguration, not "{name}"',
            "Example: --webhook-configuration coterie-operator",
        )
    if not options.webhook or not options.webhook_certificates:
        yield UsageError(
            "--webhook-configuration needs --webhook and --webhook-certificates",
            "Replicas behind one Service need certificates of one authority, such as a secret of cert-manager.",
        )
    if options.webhook_cleanup:
        yield UsageError(
            "--webhook-cleanup cannot be used with --webhook-configuration, which the operator did not create",
            "Remove one of the two options.",
        )


def print_crds(options: OperatorCrdsOptions) -> None:
    """Print the definitions as YAML, ready for kubectl."""
    show([yaml.safe_dump_all(definitions(beside_grove=options.beside_grove), sort_keys=False, width=120).rstrip("\n")])
