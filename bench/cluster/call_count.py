"""The number of calls to clusters that a process makes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from coterie.kube.api import Api, ApiResponse
from coterie.kube.errors import RequestDescription


class CallCount:
    """The number of calls of all clients in this process by verb and kind, without watches."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        attempt = Api.attempt

        def counted(
            api: Api,
            call: RequestDescription,
            params: Mapping[str, str | None] | None = None,
            body: object = None,
            *,
            limit_s: float | None = None,
        ) -> ApiResponse:
            self.calls[f"{call.verb} {call.resource()}"] += 1
            return attempt(api, call, params, body, limit_s=limit_s)

        Api.attempt = counted  # type: ignore[assignment,method-assign]
