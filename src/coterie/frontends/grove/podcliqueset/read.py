"""The reading of a Kubernetes object to a `PodCliqueSet`, with the defaults that an API server fills in."""

from __future__ import annotations

from collections.abc import Sequence

from coterie.document.located import Path
from coterie.document.schema import DocumentModel, named_fields
from coterie.frontends.grove.podcliqueset import manifest
from coterie.frontends.grove.podcliqueset.model import (
    DEFAULT_TERMINATION_DELAY_NS,
    TEMPLATE,
    ClaimTemplate,
    Clique,
    PodCliqueSet,
    Scale,
    ScalingGroup,
    SharedClaim,
    Startup,
    TopologyConstraint,
    UpdateStrategy,
)
from coterie.frontends.kubernetes.objects import DEFAULT_NAMESPACE, Resource, shaped


def read_podcliqueset(resource: Resource) -> PodCliqueSet:
    """Return a PodCliqueSet; raise `SpecErrors` with every wrong type, missing or unknown field.

    The set may still break rules: see `create_faults`.
    """
    model = shaped(manifest.Manifest, resource, _advice)
    metadata, spec = model.metadata, model.spec
    template = spec.template
    headless, update = template.headless, spec.update_strategy
    return PodCliqueSet(
        name=resource.name,
        namespace=resource.namespace or DEFAULT_NAMESPACE,
        replicas=int(spec.replicas or 0),
        cliques=tuple(
            _clique(each, (*TEMPLATE, "cliques", index), resource) for index, each in enumerate(template.cliques)
        ),
        groups=tuple(
            _group(each, (*TEMPLATE, "podCliqueScalingGroups", index))
            for index, each in enumerate(template.groups or ())
        ),
        constraint=_constraint(template.constraint, TEMPLATE),
        labels=metadata.labels or {},
        annotations=metadata.annotations or {},
        startup=template.startup or Startup.ANY_ORDER,
        update_strategy=(update.type if update else None) or UpdateStrategy.ROLLING_RECREATE,
        termination_delay_ns=_or(template.termination_delay, DEFAULT_TERMINATION_DELAY_NS),
        publish_not_ready=headless is None or headless.publish_not_ready is not False,
        priority_class=template.priority_class or "",
        claim_templates=tuple(
            ClaimTemplate((*TEMPLATE, "resourceClaimTemplates", index), each.name, each.template_spec)
            for index, each in enumerate(template.claim_templates or ())
        ),
        sharing=_sharing(template.sharing, TEMPLATE),
        resource=resource,
    )


def _clique(model: manifest.CliqueModel, path: Path, resource: Resource) -> Clique:
    spec = model.spec
    written = _or(spec.replicas, 1)
    replicas = written or 1
    return Clique(
        path=path,
        name=model.name,
        role=spec.role_name,
        replicas=replicas,
        # A 0 becomes 1 pod, but the API server derives minAvailable from the 0 as written, and then refuses it.
        min_available=_or(spec.min_available, written),
        pod_spec=resource.get(*path, "spec", "podSpec"),
        labels=model.labels or {},
        annotations=model.annotations or {},
        constraint=_constraint(model.constraint, path),
        starts_after=tuple(spec.starts_after or ()),
        scale=_scale(spec.scale, (*path, "spec", "autoScalingConfig"), replicas),
        sharing=_sharing(model.sharing, path),
        min_written=spec.min_available is not None,
    )


def _group(model: manifest.GroupModel, path: Path) -> ScalingGroup:
    replicas = _or(model.replicas, 1)
    return ScalingGroup(
        path=path,
        name=model.name,
        clique_names=tuple(model.clique_names),
        replicas=replicas,
        min_available=_or(model.min_available, 1),
        annotations=model.annotations or {},
        constraint=_constraint(model.constraint, path),
        scale=_scale(model.scale, (*path, "scaleConfig"), replicas),
        sharing=_sharing(model.sharing, path),
        min_written=model.min_available is not None,
    )


def _constraint(model: manifest.ConstraintModel | None, owner: Path) -> TopologyConstraint | None:
    if model is None:
        return None
    pack = model.pack
    return TopologyConstraint(
        path=(*owner, "topologyConstraint"),
        topology=model.topology_name or "",
        required=(pack.required if pack else None) or "",
        preferred=(pack.preferred if pack else None) or "",
        legacy=model.pack_domain or "",
        pack=pack is not None,
    )


def _scale(model: manifest.ScaleModel | None, path: Path, replicas: int) -> Scale | None:
    return None if model is None else Scale(path, _or(model.min_replicas, replicas), int(model.max_replicas))


def _sharing(models: Sequence[manifest.SharingModel] | None, owner: Path) -> tuple[SharedClaim, ...]:
    found = []
    for index, model in enumerate(models or ()):
        chosen = getattr(model, "filter", None)
        found.append(
            SharedClaim(
                path=(*owner, "resourceSharing", index),
                name=model.name,
                namespace=model.namespace or "",
                scope=model.scope,
                cliques=tuple(chosen.child_clique_names or ()) if chosen else None,
                groups=tuple(getattr(chosen, "child_group_names", None) or ()) if chosen else None,
            )
        )
    return tuple(found)


def _or(written: int | None, default: int) -> int:
    return default if written is None else int(written)


def _advice(model: type[DocumentModel] | None, word: str) -> str:
    """Return where a misplaced field belongs."""
    homes: tuple[tuple[type[DocumentModel], str], ...] = (
        (manifest.TemplateModel, "spec.template"),
        (manifest.CliqueSpecModel, "the spec of a clique: spec.template.cliques[].spec"),
        (manifest.CliqueModel, "a clique: spec.template.cliques[]"),
        (manifest.GroupModel, "a scaling group: spec.template.podCliqueScalingGroups[]"),
        (manifest.PackModel, "pack: {required: DOMAIN, preferred: DOMAIN}"),
    )
    if word in ("podCliqueScalingGroupConfigs", "scalingGroups"):
        return 'Did you mean "podCliqueScalingGroups"?'
    if word == "schedulerName":
        return "schedulerName belongs to the pods: spec.template.cliques[].spec.podSpec.schedulerName."
    home = next((text for each, text in homes if each is not model and word in named_fields(each)), "")
    return f"{word} belongs to {home}." if home else ""
