"""The number of pods that a PodGroup waits for: those of unfinished tasks.

KAI does not count pods that have ended. A replacement in a group of which some tasks have ended would therefore wait
for ever, unless the PodGroup asks for fewer members.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coterie.backends.kai.driver.objects import GangPodGroup

Json = dict[str, Any]


def member_changes(group: GangPodGroup, unfinished: Mapping[str, int]) -> list[Json]:
    """Return the JSON patch after which a PodGroup asks for its unfinished members; `unfinished` is by subgroup.

    A subgroup whose members have all ended is removed, since KAI asks at least one of each.
    """
    subgroups = group.spec.sub_groups or []
    whole = sum(unfinished.values())
    changes: list[Json] = []
    if whole and group.spec.min_member != whole:
        changes.append({"op": "replace", "path": "/spec/minMember", "value": whole})
    kept = {each.name for each in subgroups if each.min_member is not None and unfinished.get(each.name)}
    parents = {each.name: each.parent or "" for each in subgroups}
    for name in list(kept):
        while name := parents.get(name, ""):
            kept.add(name)
    # From the last to the first, so that a removal moves none that is still to be changed.
    for index, each in reversed(list(enumerate(subgroups))):
        path = f"/spec/subGroups/{index}"
        if each.name not in kept:
            changes += [{"op": "test", "path": f"{path}/name", "value": each.name}, {"op": "remove", "path": path}]
        elif each.min_member is not None and each.min_member != unfinished[each.name]:
            changes += [
                {"op": "test", "path": f"{path}/name", "value": each.name},
                {"op": "replace", "path": f"{path}/minMember", "value": unfinished[each.name]},
            ]
    return changes
