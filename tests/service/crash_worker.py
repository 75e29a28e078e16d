"""A service killed at random moments of a run: `python -m tests.service.crash_worker FOLDER KILLS SEED [disturbed]`.

The service runs in forks of a process that has imported everything, so that most kills hit its work and not its start.
With an odd seed, the states of all workflows are stored in parts. With `disturbed`, users cancel, retry and delete
workflows and change pools meanwhile, and watchers of tasks are killed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from coterie.backends.local.machine.processes import ProcessIdentity
from coterie.errors import Conflict, NotFound, Unavailable
from coterie.lifecycle import state_encoder
from coterie.service.service import Service
from coterie.service.settings import Submission
from tests.service.running_service import ServiceFolder, task, workflow

# Each task leaves a line, so that a second run of it shows.
MARK = 'echo "$COTERIE_WORKFLOW $COTERIE_TASK $COTERIE_ATTEMPT" >> {ledger}; '
PATIENCE_S = 120.0


def submissions(ledger: Path) -> list[tuple[Submission, str, dict[str, int]]]:
    """Return twenty workflows, each with the status it ends with, and how often each of its tasks runs."""
    mark = MARK.format(ledger=ledger)
    found: list[tuple[Submission, str, dict[str, int]]] = []
    for number in range(5):
        pause = f"sleep 0.{number + 1}"
        gang = {"g": [task(f"w{rank}", mark + pause, "lead: true" if not rank else "") for rank in range(4)]}
        topology = "[{key: rack}]"
        found.append((workflow(f"gang{number}", gang, topology=topology), "COMPLETED", dict.fromkeys(_names(4), 1)))
        chain = {
            "one": [task("a", mark + pause + "; echo $COTERIE_TASK > {{output}}/said")],
            "two": [task("b", mark + "grep -q a {{input:0}}/said", "inputs: [{task: a}]")],
            "three": [task("c", mark + "exit 0", "inputs: [{task: b}]")],
        }
        found.append((workflow(f"chain{number}", chain, gpu=1), "COMPLETED", {"a": 1, "b": 1, "c": 1}))
        broken = {
            "one": [task("a", mark + pause + "; exit 3")],
            "two": [task("b", mark + "true", "inputs: [{task: a}]")],
        }
        found.append((workflow(f"broken{number}", broken, gpu=2), "FAILED", {"a": 1}))
        again = {"g": [task("a", mark + pause + "; test $COTERIE_ATTEMPT -ge 3", 'exitActions: {RESCHEDULE: "1"}')]}
        found.append((workflow(f"again{number}", again, gpu=4), "COMPLETED", {"a": 3}))
    return found


def _names(count: int) -> list[str]:
    return [f"w{rank}" for rank in range(count)]


def main() -> None:
    """Run twenty workflows under so many kills; print how each of them ended."""
    folder, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    place, dice = ServiceFolder(folder), random.Random(seed)  # noqa: S311 - a seed makes the moments come again
    if seed % 2:
        state_encoder.PART_TASKS = 2
    settings = place.settings(processes=6)
    wanted = submissions(folder / "ledger")
    service = Service(settings)
    for submission, _, _ in wanted:
        service.submit(submission)
    service.stop()
    done = 0
    deleted: set[str] = set()
    while done < kills:
        child = os.fork()
        if child == 0:
            _serve(place)
        if "disturbed" in sys.argv:
            _disturb(place, dice, deleted)
        time.sleep(dice.uniform(0.02, 0.7))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        done += 1
    last = Service(place.settings(processes=6))
    before = sum(count for (_, status), count in last.store.tally().items() if status in {"COMPLETED", "FAILED"})
    with last:
        until = time.monotonic() + PATIENCE_S
        while (
            any(each.observation["kind"] == "delete" for each in last.store.pending_requests())
            and time.monotonic() < until
        ):
            time.sleep(0.05)
        ids = [item["id"] for item in last.workflows(limit=1000)["items"]]
        views = [last.wait(ident, timeout_s=until - time.monotonic()) for ident in ids]
        gone = [folder / "state" / "tasks" / ident for ident in deleted]
        while (last.health()["problems"] or any(each.exists() for each in gone)) and time.monotonic() < until:
            time.sleep(0.05)
        held = {key: len(rows) for key, rows in last.store.held().items()}
        health = last.health()
    ended = {view["name"]: [view["status"], view["finished"], view["message"]] for view in views}
    told = {"ended": ended, "held": held, "problems": health["problems"], "before": before, "deleted": sorted(deleted)}
    print(json.dumps(told))  # noqa: T201 - the answer


def _disturb(place: ServiceFolder, dice: random.Random, deleted: set[str]) -> None:
    """Do what users and the machine do at any moment; what is refused because of its moment is left."""
    if dice.random() < 0.4:
        _kill_a_watcher(place, dice)
    beside = Service(place.settings(processes=6))
    try:
        idents = [item["id"] for item in beside.workflows(limit=1000)["items"]]
        ident = dice.choice(idents)
        match dice.choice(("cancel", "cancel by force", "retry", "delete", "pool")):
            case "cancel":
                beside.cancel(ident)
            case "cancel by force":
                beside.cancel(ident, force=True)
            case "retry":
                beside.retry(ident)
            case "delete" if len(idents) > 10:
                beside.delete(ident, force=True)
                deleted.add(ident)
            case "pool":
                beside.apply_pool("other", {"backend": "lab", "gpus": {"limit": dice.randint(1, 30)}})
    except (Conflict, NotFound, Unavailable):
        pass
    finally:
        beside.stop()


def _kill_a_watcher(place: ServiceFolder, dice: random.Random) -> None:
    claims = sorted((place.folder / "state" / "tasks").glob("[!.]*/*/*/*/claim"))
    for claim in dice.sample(claims, len(claims)):
        try:
            identity = ProcessIdentity.of(claim.read_text(encoding="utf-8").split()[1:])
            if identity is not None and identity.alive():
                os.kill(identity.pid, signal.SIGKILL)
                return
        except OSError:
            continue


def _serve(place: ServiceFolder) -> None:
    service = Service(place.settings(processes=6))
    service.start()
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
