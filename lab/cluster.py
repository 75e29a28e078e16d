"""A lab: a Kubernetes control plane with KAI, KWOK and NVIDIA's ComputeDomain controller, as plain processes."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from lab import baseline, folders, waits
from lab.api import Api, ApiError, Object
from lab.control_plane import kai, readiness
from lab.control_plane.computedomain import compute_domain, prerequisites
from lab.control_plane.kube_scheduler import kube_scheduler
from lab.control_plane.kubernetes import control_plane
from lab.control_plane.kwok import kwok
from lab.errors import LabError, start_failure
from lab.kubeconfig import write_kubeconfig
from lab.ports import Ports
from lab.process import Program
from lab.programs import components
from lab.programs.build import build
from lab.realnodes import requirements
from lab.realnodes.node import Surroundings
from lab.realnodes.nodes import RealNodes

T = TypeVar("T")

# What a lab may schedule with, by the names that people give: KAI, and Kubernetes' own default-scheduler.
SCHEDULERS = {"kai": components.KAI, "default": components.KUBE_SCHEDULER}


def scheduler_names(text: str) -> list[str]:
    """Return the schedulers of a list such as "kai,default"; raise `LabError` for one that the lab does not have."""
    names = [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in SCHEDULERS]:
        raise LabError(
            f'the lab has no scheduler "{unknown[0]}"', "It has kai and default; with both, write: kai,default."
        )
    return names


class Lab:
    """One cluster of its own, from `start` to `stop`, or for the length of a `with` block.

    Everything it writes is in its folder. The folder is removed when the lab stops; after a failure the logs stay, and
    `kept_logs` says where. With `tied` its programs end with this process, whatever happens to it. `resets` counts how
    often it was reset.
    """

    def __init__(
        self,
        *,
        schedulers: Collection[str] = ("kai",),
        compute_domain: bool = True,
        kai_actions: str = "allocate",
        real_nodes: int = 0,
        folder: Path | None = None,
        tied: bool = True,
        on_start: Callable[[Program], None] = lambda _: None,
    ) -> None:
        self._schedulers, self._with_compute_domain = frozenset(schedulers), compute_domain
        self._actions = kai_actions
        self._most_real = real_nodes
        self._real: RealNodes | None = None
        self._given = folder
        self._tied = tied
        self._on_start = on_start
        self._ports = Ports()
        self._api: Api | None = None
        self._folder: Path | None = None
        self._baseline: Mapping[str, frozenset[tuple[str, str]]] = {}
        self.programs: dict[str, Program] = {}
        self.resets = 0
        self.keep_logs = False
        self.kept_logs: Path | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.keep_logs |= kind is not None
        self.stop()
        if value is not None and self.kept_logs:
            value.add_note(f"logs of the lab: {self.kept_logs}")

    @property
    def folder(self) -> Path:
        """The folder of all files of the lab."""
        if self._folder is None:
            raise LabError("the lab has not been started", "Call start() first, or use it in a with block.")
        return self._folder

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of a user who may do anything."""
        return self.folder / "kubeconfig"

    @property
    def logs(self) -> Path:
        """The folder with one log for each program."""
        return self.folder / "logs"

    @property
    def url(self) -> str:
        """The address of the API server."""
        return self._url

    @property
    def api(self) -> Api:
        """A client of the API server that may do anything."""
        if self._api is None:
            raise LabError("the lab does not run", "Call start() first, or use it in a with block.")
        return self._api

    @property
    def real_nodes(self) -> RealNodes:
        """The nodes that run containers, by name: the first ones that were added."""
        if self._real is None:
            raise LabError("the lab has no real nodes", "Start it with real_nodes=N.")
        return self._real

    @property
    def real_nodes_left(self) -> int:
        """The number of nodes still to be added that become real."""
        return self._real.left if self._real is not None else 0

    def start(self) -> None:
        """Build what is missing, start everything and return when it works; clean up and raise when it does not."""
        wanted = [components.KUBERNETES, components.KWOK]
        wanted += [component for name, component in SCHEDULERS.items() if name in self._schedulers]
        wanted += [components.COMPUTE_DOMAIN] if self._with_compute_domain else []
        if self._most_real:
            requirements.require()
            wanted.append(components.KUBELET)
        built = build(wanted)
        try:
            self._folder = self._given or folders.new_folder()
            self.logs.mkdir(parents=True)
            folders.require_room(self.folder)
            self._start(built)
        except OSError as error:
            folder = self._folder or tempfile.gettempdir()
            self.stop()
            raise start_failure(folder, error) from None
        except BaseException as error:
            self.keep_logs = True
            self.stop()
            if isinstance(error, LabError) and self.kept_logs:
                error.hint = f"{error.hint} The logs are in {self.kept_logs}.".strip()
            raise

    def stop(self) -> None:
        """End all programs and remove the folder; a lab that does not run is left as it is."""
        if self._api is not None:
            self._api.close()
            self._api = None
        real, self._real = self._real, None
        try:
            if real is not None:
                real.close()
        finally:
            for program in reversed(self.programs.values()):
                program.stop()
            self._ports.release()
            if self._folder is not None:
                if self.keep_logs and self.logs.is_dir():
                    self.kept_logs = folders.keep_logs(self.logs)
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder = None
            if real is not None:
                real.dismiss_guard()

    def kubectl(self, *arguments: str, input: str | None = None, check: bool = True) -> str:  # noqa: A002 - as subprocess calls it
        """Run kubectl as the user who may do anything, and return what it prints; raise `LabError` when it fails."""
        command = [
            str(self.binary("kubectl")),
            f"--kubeconfig={self.kubeconfig}",
            # Its usual cache is by address, and an address may be that of an older lab.
            f"--cache-dir={self.folder / 'kubectl-cache'}",
            *arguments,
        ]
        # S603: the lab's own program.
        done = subprocess.run(command, input=input, capture_output=True, text=True, check=False)  # noqa: S603
        if check and done.returncode:
            raise LabError(f"kubectl {' '.join(arguments[:3])} failed: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def binary(self, name: str) -> Path:
        """Return the path of one of the lab's programs."""
        for component in components.ALL:
            if name in component.binaries:
                return self._built[component.name] / name
        raise LabError(f'the lab has no program "{name}"')

    def apply(self, manifests: str | Object | Sequence[Object]) -> None:
        """Apply manifests, one after the other: YAML or JSON text, an object, or several."""
        if isinstance(manifests, str):
            self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=manifests)
        else:
            for each in [manifests] if isinstance(manifests, dict) else manifests:
                self.api.apply(each)

    def get(self, kind: str, name: str, namespace: str = "default") -> Object | None:
        """Return an object, or None when it is not there."""
        return self.api.get(kind, name, namespace)

    def objects(self, kind: str, namespace: str = "", selector: str = "") -> list[Object]:
        """Return the objects of a kind: in one namespace or, without one, in all."""
        return self.api.objects(kind, namespace, selector)

    def queue(self, name: str = "default", gpus: int = -1) -> str:
        """Create a queue with a parent of its own, and return its name for PodGroups and pods."""
        parent = f"{name}-parent"
        self.apply([kai.queue(parent), kai.queue(name, parent, gpus)])
        return name

    def wait(self, predicate: Callable[[], T], timeout: float = 30.0, what: str = "") -> T:
        """Return what `predicate` returns as soon as that is true; a busy machine gets several times the timeout.

        Raises `TimeoutExpiredError` with pod events and the scheduler's last lines when the time is over, and
        `LabError` at once when a program of the lab has ended.
        """
        return waits.wait(self, predicate, timeout, what)

    def reset(self, timeout: float = 120.0) -> None:
        """Bring the cluster back to how it was when it started: no node, no pod, nothing that a test made.

        Namespaces and the definitions of kinds stay.
        """
        self.resets += 1
        if self._real is not None:
            self._real.clear()
        baseline.reset(self.api, self._baseline, timeout)

    def define_grove(self) -> None:
        """Install the definitions of Grove's kinds, which are large and stay; its operator is not part of the lab."""
        if not any(resource.group == "grove.io" for resource in self.api.resources()):
            readiness.define(self.api, build([components.GROVE]).values())

    def kubeconfig_for(self, account: str, namespace: str = "default") -> Path:
        """Return a kubeconfig for a service account, which is made if need be: it may do what RBAC says it may."""
        path = self.folder / f"kubeconfig-{namespace}-{account}"
        authority = self.folder / "certificates" / "apiserver.crt"
        write_kubeconfig(path, self._url, self.token_for(account, namespace), authority, namespace=namespace)
        return path

    def token_for(self, account: str, namespace: str = "default", bound_to: str = "") -> str:
        """Return a token of a service account, which is made if need be; or one that goes with a Secret."""
        metadata = {"name": account, "namespace": namespace}
        with suppress(ApiError):
            self.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        with suppress(ApiError):
            self.api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        bound = {"boundObjectRef": {"apiVersion": "v1", "kind": "Secret", "name": bound_to}} if bound_to else {}
        spec = {"expirationSeconds": 86400, **bound}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return str(self.api.request("POST", path, body)["status"]["token"])

    def _start(self, built: Mapping[str, Path]) -> None:
        self._built = built
        plane = control_plane(built["kubernetes"], self.folder, self._ports, tied=self._tied)
        self._url = plane.url
        self._run(plane.etcd)
        self._run(plane.api_server)
        self._api = readiness.answering(plane)
        write_kubeconfig(plane.kubeconfig, plane.url, plane.token, plane.authority)
        self._run(kwok(built["kwok"], self.folder, plane.kubeconfig, tied=self._tied))
        if self._most_real:
            self._real = RealNodes(self._surroundings(built), self._most_real, self._ports.take)
        readiness.define(self._api, built.values())
        # Its garbage collector looks for new kinds only every 30 s: what is defined before its start, it knows at once.
        self._run(plane.controller_manager)
        ports = []
        if "kai" in self._schedulers:
            made = kai.kai(
                built["kai"], self.folder, plane.kubeconfig, self._ports, actions=self._actions, tied=self._tied
            )
            self._run(made.scheduler)
            self._run(made.binder)
            ports.append(made.port)
        if "default" in self._schedulers:
            native = kube_scheduler(
                built["kube-scheduler"], self.folder, plane.kubeconfig, self._ports, tied=self._tied
            )
            self._run(native.program)
            ports.append(native.port)
        if self._with_compute_domain:
            self._api.each(self._api.create, prerequisites())
            self._run(compute_domain(built["computedomain"], self.folder, plane.kubeconfig, tied=self._tied))
        self.wait(lambda: all(map(waits.listens, ports)), 60, "the schedulers run")
        self._baseline = baseline.current(self._api)

    def _surroundings(self, built: Mapping[str, Path]) -> Surroundings:
        return Surroundings(
            folder=self.folder,
            kubeconfig=self.kubeconfig,
            kubelet=built["kubelet"] / "kubelet",
            images=self.folder / "images.tar",
            api=self.api,
            run=self._run,
            wait=self.wait,
            tied=self._tied,
        )

    def _run(self, program: Program) -> None:
        self.programs[program.name] = program
        program.start()
        self._on_start(program)
