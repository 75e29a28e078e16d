"""`coterie operator`: an operator that runs until it is stopped, and the definitions of its kinds."""

from __future__ import annotations

from pathlib import Path

import yaml

from coterie.cli.commands.operator import OperatorOptions
from coterie.cli.output.screen import show
from coterie.errors import UsageError, did_you_mean
from coterie.frontends.admission import TargetCluster
from coterie.json_log import log_as_json
from coterie.operator.crds import definitions
from coterie.operator.operator import run as run_operator
from coterie.operator.settings import OWNABLE, OperatorSettings


def run(options: OperatorOptions) -> None:
    """Run until interrupted."""
    known = [kind.name for kind in OWNABLE]
    for name in options.own:
        if name not in known:
            hint = f"{did_you_mean(name, known)} Kinds are: {', '.join(known)}.".lstrip()
            raise UsageError(f'--own names no kind that an operator can own: "{name}"', hint)
    log_as_json()
    settings = OperatorSettings(
        context=options.context,
        listen=options.listen,
        own=options.own,
        webhook=options.webhook,
        webhook_certificates=Path(options.webhook_certificates) if options.webhook_certificates else None,
        webhook_cleanup=options.webhook_cleanup,
        cluster=TargetCluster(off=frozenset(each.value for each in options.off)),
        lease_namespace=options.lease_namespace,
    )

    def started(address: str) -> None:
        if address:
            show([address])

    run_operator(settings, started)


def print_crds() -> None:
    """Print the definitions as YAML, ready for kubectl."""
    show([yaml.safe_dump_all(definitions(), sort_keys=False, width=120).rstrip("\n")])
