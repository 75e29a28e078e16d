"""A real Kubernetes with KAI, KWOK and NVIDIA's ComputeDomain controller, as plain processes.

The project's test bed, and a cluster that anybody can start on a laptop: no container, no GPU, no privileges. Root can
have nodes that run containers as well.
"""

from __future__ import annotations

from lab.cluster import Lab
from lab.control_plane.kwok import EXIT_CODE, RUNS_FOR
from lab.errors import GoMissingError, LabError, TimeoutExpiredError
from lab.realnodes.image import IMAGE

__all__ = ["EXIT_CODE", "IMAGE", "RUNS_FOR", "GoMissingError", "Lab", "LabError", "TimeoutExpiredError"]
