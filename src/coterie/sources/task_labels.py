"""The labels of pods and PodGroups that name Coterie's own workflows, groups, tasks and attempts."""

from __future__ import annotations

WORKFLOW = "coterie.dev/workflow"
GROUP = "coterie.dev/group"
TASK = "coterie.dev/task"
ATTEMPT = "coterie.dev/attempt"
