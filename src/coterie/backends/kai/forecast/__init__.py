"""KAI's own placement rule, version 0.13.1, as a pure function: a forecast for a PodGroup.

The rule is greedy and looks at sums before it looks at nodes, so it can leave a gang pending that fits. In short:

1. A PodGroup is walked from its root. For a part with a constraint KAI picks candidate domains (`candidates`), finest
   first and the fullest first, and tries one after the other until everything below the part has found its node.
2. Inside a domain the parts below are placed in the order of their names, those with subgroups before those with pods
   (`walk`). The choice of one of them is never revised, unless a part above moves to its next domain.
3. A pod goes to the node with the best score that has room for it and may take it (`room`).
4. Pods above a leaf's minimum are placed one by one when all minima are met; the first that does not fit ends this.

`kai_would_place` returns the outcome for one PodGroup in an idle queue. It ignores fractions of GPUs, MIG slices,
claims to devices other than NVLink channels, host ports and volumes, and counts terminating pods as running.
"""

from coterie.backends.kai.forecast.outcomes import ForecastPlacement, ForecastReason, ForecastRefusal, ForecastUnknown
from coterie.backends.kai.forecast.walk import kai_would_place

__all__ = ["ForecastPlacement", "ForecastReason", "ForecastRefusal", "ForecastUnknown", "kai_would_place"]
