"""The preview of a PodCliqueSet or a graph deployment, which a service places on its nodes but does not run."""

from __future__ import annotations

import time
from typing import Any

from coterie.document.schema import by_file
from coterie.errors import Fault, SpecErrors, UsageError
from coterie.placement.option import Option
from coterie.planning.inputs import all_topologies
from coterie.planning.load import CompileContext, lowered, read_documents
from coterie.planning.report import plan_json
from coterie.rendering.command_line import call
from coterie.service.pools.usage import PoolUsage
from coterie.service.settings import Submission
from coterie.service.submission.preview import plan_id

Json = dict[str, Any]


def object_plan(submission: Submission, live: PoolUsage) -> Json:
    """Return the placement that the one workload of a Kubernetes file would get now, or why it would get none."""
    began = time.perf_counter()
    found = read_documents(submission.source, submission.file)
    if len(found.workloads) != 1:
        raise UsageError(
            f"a plan is about one workload, and {submission.file} has {len(found.workloads)}",
            "Send one after the other, or plan the file with coterie plan.",
        )
    pool = live.catalog.find(submission.pool).pool
    known = all_topologies(None, None, found.topologies)
    scene = CompileContext(lambda _: pool, known, configured=True, pool=pool.name, wrong=found.topologies.wrong)
    faults: list[Fault] = []
    workloads = lowered(faults, found.workloads, scene)
    if faults:
        raise SpecErrors(by_file(faults))
    (workload,) = workloads
    command = call("plan", [submission.file], [Option("pool", pool.name)])
    shown = plan_json(live.planner(pool).plan(workload), command=command, elapsed_ms=0.0)
    shown["stats"]["elapsed_ms"] = round((time.perf_counter() - began) * 1000, 3)
    return {**shown, "id": plan_id(submission, pool.name, shown)}
