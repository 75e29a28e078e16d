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
from collections import Counter
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
# What happens beside the kills, in turn.
DISTURBANCES = ("kill", "cancel", "pool", "kill", "cancel by force", "delete", "kill", "retry")


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
    disturbances: Counter[str] = Counter()
    while done < kills:
        child = os.fork()
        if child == 0:
            _serve(place)
        if "disturbed" in sys.argv:
            disturbances.update(_disturb(place, dice, deleted, DISTURBANCES[done % len(DISTURBANCES)]))
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
    print(json.dumps({**told, "disturbances": disturbances}))  # noqa: T201 - the answer


def _disturb(place: ServiceFolder, dice: random.Random, deleted: set[str], kind: str) -> list[str]:
    """Do what users and the machine do at any moment; return what was done and not refused because of its moment."""
    if kind == "kill":
        return [kind] if _kill_a_watcher(place, dice) else []
    beside = Service(place.settings(processes=6))
    try:
        rows = beside.workflows(limit=1000)["items"]
        # Those that are asked to end have not ended, and those to be retried have, unless there are none.
        ended = [row for row in rows if row["finished"] and row["status"] != "COMPLETED"]
        meant = {
            "cancel": [row for row in rows if not row["finished"]],
            "cancel by force": [row for row in rows if not row["finished"]],
            "retry": ended,
        }
        ident = dice.choice(meant.get(kind) or rows)["id"]
        match kind:
            case "cancel" | "cancel by force":
                beside.cancel(ident, force=kind == "cancel by force")
            case "retry":
                beside.retry(ident)
            case "delete" if len(rows) > 10:
                beside.delete(ident, force=True)
                deleted.add(ident)
            case "pool":
                beside.apply_pool("other", {"backend": "lab", "gpus": {"limit": dice.randint(1, 30)}})
            case _:
                return []
    except (Conflict, NotFound, Unavailable):
        return []
    finally:
        beside.stop()
    return [kind]


def _kill_a_watcher(place: ServiceFolder, dice: random.Random) -> bool:
    """Kill the watcher of a running task; return whether there was one."""
    claims = sorted((place.folder / "state" / "tasks").glob("[!.]*/*/*/*/claim"))
    for claim in dice.sample(claims, len(claims)):
        try:
            identity = ProcessIdentity.of(claim.read_text(encoding="utf-8").split()[1:])
            if identity is not None and identity.alive():
                os.kill(identity.pid, signal.SIGKILL)
                return True
        except OSError:
            continue
    return False


def _serve(place: ServiceFolder) -> None:
    service = Service(place.settings(processes=6))
    service.start()
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
