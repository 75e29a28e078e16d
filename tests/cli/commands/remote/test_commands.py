"""Commands against a running service: submit, show, why, wait, cancel, and pools."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import (
    PROGRAM,
    ROOT,
    TIMEOUT_S,
    at_terminal,
    call,
    environment,
    escapes,
    loaded,
    read_until,
    spawn,
)
from tests.cli.service_fixtures import ServiceFixture, flow, served
from tests.eventually import eventually

pytestmark = pytest.mark.slow("starts a service and calls every command of its clients, many at a terminal")

LONG = "echo up; while :; do sleep 0.1; done"


def test_a_workflow_is_submitted_waited_for_shown_and_deleted(hall: ServiceFixture) -> None:
    ident = hall.submit("echo hello", name="life")
    waited = hall.call("wait", ident, "--timeout", "2m")
    shown = hall.call("show", ident)
    deleted = hall.call("delete", ident)

    assert ident == "life-1"
    assert (waited.code, shown.code, deleted.code) == (0, 0, 0)
    assert waited.out.startswith("life-1 COMPLETED after")
    assert "t0 *" in shown.out
    assert "1 constraint: 1 held" in shown.out
    assert hall.call("show", ident).code == 4


def test_following_a_submission_ends_with_its_result(hall: ServiceFixture) -> None:
    fine = hall.call("submit", hall.file("fine.yaml", flow(name="fine")), "--follow")
    wrong = hall.call("submit", hall.file("wrong.yaml", flow("exit 2", name="wrong")), "--follow")

    assert (fine.code, wrong.code) == (0, 100)
    assert 'task "t0" runs on node' in fine.err
    assert "error: wrong-1 ended as FAILED" in wrong.err


def test_the_same_key_makes_no_second_workflow_and_other_content_is_a_conflict(hall: ServiceFixture) -> None:
    first = hall.submit("echo a", "--key", "k1", name="keyed")
    again = hall.submit("echo a", "--key", "k1", name="keyed")
    other = hall.call("submit", hall.file("keyed.yaml", flow("echo b", name="keyed")), "--key", "k1")

    assert first == again
    assert other.code == 5
    assert other.err.startswith("error: ")
    assert hall.finished(first) == "COMPLETED"


def test_a_dry_run_plans_and_stores_nothing(hall: ServiceFixture) -> None:
    file = hall.file("dry.yaml", flow(name="dry", tasks=2, gpus=8))

    placed = hall.call("submit", file, "--dry-run")
    never = hall.call("submit", hall.file("big.yaml", flow(name="big", tasks=3, gpus=8)), "--dry-run")

    assert placed.code == 0
    assert [line.split()[:2] for line in placed.out.splitlines()[1:2]] == [["+", "g"]]
    assert "a-r1-n[1-2]" in placed.out
    assert never.code == 7
    assert "NeverFits" in never.out
    assert hall.data("list", "--name", "dry") == []


def test_a_dry_run_refuses_what_submitting_refuses(hall: ServiceFixture) -> None:
    """An argument that no process can have is noticed only when the command is built."""
    text = flow("cat {{input:0}}/x", name="far").replace("lead: true,", "lead: true, inputs: [{url: s3://b/x}],")
    file = hall.file("far.yaml", text)

    planned = hall.call("submit", file, "--dry-run")
    submitted = hall.call("submit", file)

    assert planned.code == submitted.code == 3
    assert "which is a URL" in planned.err
    assert planned.err == submitted.err
    assert "Submit with" not in planned.err


def test_the_numbers_of_a_tasks_gpus_are_not_taken_for_how_many_they_are(hall: ServiceFixture) -> None:
    ident = hall.submit(LONG, name="devices", gpus=1)
    hall.call("wait", ident, "--for", "running", "--timeout", "2m")
    shown = hall.call("show", ident).out.splitlines()
    hall.call("cancel", ident, "--force")

    assert shown[1].split() == ["NAME", "STATUS", "NODE", "DOMAIN", "DEVICES", "EXIT", "RAN"]
    assert hall.finished(ident) == "FAILED_CANCELED"


def test_faults_of_a_file_are_shown_with_their_lines(hall: ServiceFixture) -> None:
    done = hall.call("submit", hall.file("bad.yaml", flow().replace("key: rack", "key: rak")))

    assert done.code == 3
    assert "error[UnknownLevel]" in done.err
    assert "^" in done.err


def test_a_workflow_that_waits_says_why_until_there_is_room(hall: ServiceFixture) -> None:
    blocker = hall.submit(LONG, name="blocker", tasks=2, gpus=8)
    hall.call("wait", blocker, "--for", "running", "--timeout", "2m")
    waiting = hall.submit("echo later", name="later", tasks=2, gpus=8)
    late = hall.call("wait", waiting, "--for=placed", "--timeout=1s")
    why = hall.call("why", waiting)
    eventually(lambda: "NoCapacity" in hall.call("list", "--name", "later").out)
    stopped = hall.call("cancel", blocker, "-m", "enough")

    assert late.code == 124
    assert "NoCapacity" in why.out
    assert blocker in why.out
    assert stopped.out in {f"{blocker} is being canceled\n", f"{blocker} is canceled\n"}
    assert hall.finished(waiting) == "COMPLETED"
    assert hall.call("wait", blocker).code == 103
    assert hall.call("cancel", blocker).out == f"{blocker} is canceled\n"


def test_logs_are_printed_as_they_were_written_and_followed_to_the_end(hall: ServiceFixture) -> None:
    ident = hall.submit("printf 'one\\ntwo'; sleep 0.5; echo; echo three", name="talk")

    followed = hall.call("logs", f"{ident}/t0", "--follow")

    assert followed.out == "one\ntwo\nthree\n"
    assert hall.call("logs", ident).out == followed.out
    assert hall.call("logs", f"{ident}/t9").code == 4
    assert hall.call("logs", f"{ident}/t0", "--attempt", "7").code == 4


def test_logs_of_a_workflow_are_those_of_all_its_tasks_with_their_names(hall: ServiceFixture) -> None:
    # The group ends with its lead, which therefore waits for the other.
    said = hall.folder / "said"
    both = f"touch {said}-$COTERIE_TASK; until [ -e {said}-t0 -a -e {said}-t1 ]; do sleep 0.05; done"
    ident = hall.submit(f"echo one; echo two; sleep 0.3; echo three; {both}", name="several", tasks=2)

    followed = hall.call("logs", ident, "--follow")
    last = hall.call("logs", ident, "--tail", "1")
    data = hall.call("logs", f"{ident}/t1", "-o", "json", "--tail", "2")

    assert sorted(followed.out.splitlines()) == [f"t{n} | {word}" for n in (0, 1) for word in ("one", "three", "two")]
    assert last.out == "t0 | three\nt1 | three\n"
    assert hall.call("logs", f"{ident}/t0", "--tail", "1").out == "three\n"
    assert hall.call("logs", f"{ident}/t0", "--since", "1h").out == "one\ntwo\nthree\n"
    assert [json.loads(line) for line in data.out.splitlines()] == [
        {"type": "log", "task": "t1", "attempt": 1, "text": text} for text in ("two", "three")
    ]
    assert hall.call("logs", ident, "-o", "name").out.split() == [f"{ident}/t0", f"{ident}/t1"]
    assert hall.call("logs", ident, "--attempt", "1").code == 2
    assert hall.call("logs", ident, "-o", "yaml").code == 2
    for output in ("table", "json"):
        missing = hall.call("logs", f"{ident}/t7", "-o", output)
        assert missing.code == 4
        assert "Tasks are: t0, t1." in missing.out + missing.err


@pytest.mark.parametrize(("answer", "code"), [("", 130), ("n", 130), ("y", 0)])
def test_deleting_at_a_terminal_asks_first(hall: ServiceFixture, answer: str, code: int) -> None:
    ident = hall.submit(name=f"asked-{answer or 'nothing'}")
    assert hall.finished(ident) == "COMPLETED"

    with at_terminal("delete", ident, COTERIE_SERVER=hall.url) as (process, terminal):
        read_until(terminal, f"Delete {ident}, with all logs and outputs? [y/N] ")
        os.write(terminal, f"{answer}\n".encode())
        read_until(terminal, None)
        process.wait(TIMEOUT_S)

    assert process.returncode == code
    assert hall.call("show", ident).code == (4 if answer == "y" else 0)


def test_yes_and_one_workflow_to_cancel_ask_nothing_at_a_terminal(hall: ServiceFixture) -> None:
    idents = [hall.submit("sleep 600", name=f"many{number}", gpus=1) for number in range(3)]

    for arguments in (["cancel", idents[0]], ["cancel", "-y", *idents[1:]]):
        with at_terminal(*arguments, COTERIE_SERVER=hall.url) as (process, terminal):
            said = read_until(terminal, None)
            process.wait(TIMEOUT_S)
        assert (process.returncode, "[y/N]" in said) == (0, False)
    with at_terminal("cancel", *idents, COTERIE_SERVER=hall.url) as (process, terminal):
        read_until(terminal, f"Cancel {', '.join(idents)}? [y/N] ")
        os.write(terminal, b"n\n")
        read_until(terminal, "nothing changed")
        process.wait(TIMEOUT_S)

    assert process.returncode == 130


def test_events_are_lines_or_one_json_object_each(hall: ServiceFixture) -> None:
    ident = hall.submit(name="history")

    followed = hall.call("events", ident, "--follow", "-o", "json")

    kinds = [json.loads(line)["kind"] for line in followed.out.splitlines()]
    assert kinds[0] == "Submitted"
    assert "Placed" in kinds
    assert 'workflow "history" was submitted' in hall.call("events", ident).out


def test_a_failed_workflow_runs_again_when_asked(hall: ServiceFixture) -> None:
    flag = hall.folder / "flag"
    ident = hall.submit(f"test -e {flag}", name="again")
    assert hall.finished(ident) == "FAILED"

    flag.touch()
    done = hall.call("retry", ident)

    assert done.code == 0
    assert hall.call("wait", ident, "--for", "completed", "--timeout", "2m").code == 0


def test_what_cannot_be_done_now_is_a_conflict_and_every_id_is_tried(hall: ServiceFixture) -> None:
    ident = hall.submit(name="over")
    assert hall.finished(ident) == "COMPLETED"

    done = hall.call("cancel", ident, "nobody-1")

    assert done.code == 5
    assert done.err.count("error: ") == 2
    assert hall.call("retry", ident).code == 5
    answers = hall.data("cancel", ident, "nobody-1")
    assert [(one["id"], one["errors"][0]["code"]) for one in answers] == [(ident, "Conflict"), ("nobody-1", "NotFound")]


def test_a_plan_is_submitted_by_its_id_and_one_that_no_longer_holds_is_not(hall: ServiceFixture) -> None:
    file = hall.file("held.yaml", flow("while :; do sleep 0.1; done", name="held", gpus=8))
    planned = hall.call("submit", file, "--dry-run")
    plan = planned.err.rpartition(" --plan ")[2].strip()
    first = hall.call("submit", file, "--plan", plan)
    hall.call("wait", "held-1", "--for", "placed", "--timeout", "2m")
    stale = hall.call("submit", file, "--plan", plan)
    hall.call("cancel", "held-1")

    assert f"Submit with: coterie submit {file} --plan {plan}" in planned.err
    assert (first.code, first.out) == (0, "held-1\n")
    assert stale.code == 5
    assert "+ g" in stale.out
    assert f"error: plan {plan} is out of date" in stale.err
    assert [row["id"] for row in hall.data("list", "--name", "held")] == ["held-1"]
    assert hall.call("submit", file, "--plan", "nonsense").code == 2
    assert hall.call("submit", file, "--plan", plan, "--dry-run").code == 2
    assert hall.finished("held-1") == "FAILED_CANCELED"


def test_a_fault_of_a_template_shows_the_line_of_the_file(hall: ServiceFixture) -> None:
    text = (
        flow().replace("key: rack", "key: rak").replace("  groups:", "{% for _ in [1, 2] %}\n{% endfor %}\n  groups:")
    )

    done = hall.call("submit", hall.file("template.yaml", text))

    assert done.code == 3
    assert "(rendered)" not in done.err
    marked = done.err.splitlines()
    at = next(number for number, line in enumerate(marked) if "^^^" in line)
    assert marked[at - 1][marked[at].index("^") :].startswith("rak")


def test_a_list_says_where_workflows_run_and_how_their_tasks_are(hall: ServiceFixture) -> None:
    ident = hall.submit(LONG, name="seat", tasks=2, gpus=8)
    eventually(lambda: "  2 run  " in hall.call("list", "--name", "seat").out)
    listed = hall.call("list", "--name", "seat").out.splitlines()
    hall.call("cancel", ident)
    assert listed[0].split()[-1] == "WHERE/WHY"
    assert listed[1].endswith("  a-r1-n[1-2]")
    assert hall.finished(ident) == "FAILED_CANCELED"


def test_a_pool_that_there_is_not_is_no_empty_list(hall: ServiceFixture) -> None:
    done = hall.call("list", "--pool", "labb")

    assert done.code == 4
    assert 'Did you mean "lab"?' in done.err


def test_a_failed_submission_that_was_followed_names_the_task_and_what_it_wrote(hall: ServiceFixture) -> None:
    done = hall.call("submit", hall.file("sad.yaml", flow("echo sorry; exit 3", name="sad")), "--follow")

    assert done.code == 100
    assert "exit code 3:\n  sorry\n" in done.err
    assert "hint: Full log: coterie logs sad-1/t0" in done.err


def test_a_workflow_that_failed_is_placed_no_more(hall: ServiceFixture) -> None:
    ident = hall.submit("exit 1", name="gone")
    assert hall.finished(ident) == "FAILED"

    done = hall.call("wait", ident, "--for", "placed")

    assert done.code == 100
    assert f"{ident} has ended as FAILED, so it will not be placed" in done.err


def test_a_workflow_that_completed_was_running(hall: ServiceFixture) -> None:
    ident = hall.submit("true", name="short")
    assert hall.finished(ident) == "COMPLETED"

    assert hall.call("wait", ident, "--for", "running").code == 0
    assert hall.call("wait", ident, "--for", "placed").code == 0


def test_the_map_of_a_pool_shows_what_its_service_runs(hall: ServiceFixture) -> None:
    ident = hall.submit(LONG, name="drawn", tasks=2, gpus=8)
    hall.call("wait", ident, "--for", "running", "--timeout", "2m")
    drawn = hall.call("pool", "map", "lab")
    coarse = hall.call("pool", "map", "lab", "--level", "zone", "-o", "name")
    data = hall.data("pool", "map", "lab")
    state = str(hall.folder / "state")
    alone = call("map", "--config", hall.folder / "coterie.yaml", COTERIE_STATE=state, COTERIE_SERVER="")
    file = hall.file("drawn.yaml", flow(name="drawn"))
    planned = call(
        *("plan", file, "--config", hall.folder / "coterie.yaml", "--set", "a=b c"),
        COTERIE_STATE=state,
        COTERIE_SERVER="",
    )
    hall.call("cancel", ident)

    assert f"16/16  {ident}" in drawn.out
    assert coarse.out == "a\n"
    assert data["gpus"]["used"] == 24
    assert "note: this is the cluster file alone" in alone.err
    assert alone.err.endswith(": coterie pool map lab\n")
    assert planned.err.endswith(f": coterie submit {file} --pool lab --set 'a=b c' --dry-run\n")
    assert hall.call("pool", "map", "lab", "--level", "rak").code == 2
    assert hall.call("pool", "map", "lab", "--workload", "nobody").code == 4
    assert hall.finished(ident) == "FAILED_CANCELED"


def test_what_changes_something_prints_data_and_names_too(hall: ServiceFixture) -> None:
    ident = hall.submit(LONG, name="data")
    canceled = hall.data("cancel", ident)
    assert hall.finished(ident) == "FAILED_CANCELED"
    again = hall.call("retry", ident, "-o", "name")
    hall.call("cancel", ident)
    assert hall.finished(ident) == "FAILED_CANCELED"
    assert [one["id"] for one in canceled] == [ident]
    assert again.out == f"{ident}\n"
    # It may have looked finished before the retry was seen to.
    eventually(lambda: hall.data("delete", ident) == [{"id": ident, "deleted": True}])


def test_a_task_that_has_not_started_says_why_there_is_nothing_to_read(hall: ServiceFixture) -> None:
    ident = hall.submit("echo hello", "--force", name="unborn", tasks=3, gpus=8)
    done = hall.call("logs", f"{ident}/t0")
    why = hall.call("why", ident)
    hall.call("cancel", ident)

    assert f"{ident}/t0 has not started" in done.err
    assert "--tasks g=2" in why.out
    assert f"To try one:\n  coterie why {ident}/g --" in why.out


def test_a_list_is_filtered_and_names_can_be_piped(hall: ServiceFixture) -> None:
    ident = hall.submit("true", "--label", "team=red", name="labelled")
    hall.finished(ident)

    assert hall.call("list", "--label", "team=red", "-o", "name").out == f"{ident}\n"
    assert [row["id"] for row in hall.data("list", "--label", "team=red", "--status", "completed")] == [ident]
    assert hall.call("list", "--status", "nonsense").code == 2
    assert hall.call("list", "--label", "nonsense").code == 2
    assert hall.call("list", "--since", "nonsense").code == 2


def test_pools_are_listed_shown_applied_and_deleted(hall: ServiceFixture) -> None:
    document = "backend: here\ntopology_keys:\n- {key: rack, label: topology.kubernetes.io/rack}\n"
    file = hall.file("pool.yaml", document)

    tried = hall.call("pool", "apply", file, "--name", "side", "--dry-run")
    made = hall.call("pool", "apply", file, "--name", "side")
    same = hall.call("pool", "apply", file, "--name", "side")

    assert tried.out == "side: would be created.\n"
    assert made.out == "side: created.\n"
    assert "no changes" in same.out
    assert hall.call("pool", "list", "-o", "name").out.split() == ["lab", "side"]
    assert "topology.kubernetes.io/rack" in hall.call("pool", "show", "side").out
    assert sorted(hall.call("topology", "show", "lab", "-o", "name").out.split()) == ["a", "a/r1", "a/r2"]
    assert "rack" in hall.call("topology", "list").out
    assert hall.call("pool", "delete", "side").code == 0
    assert hall.call("pool", "show", "side").code == 4
    assert hall.call("pool", "delete", "lab").code == 5
    assert hall.call("pool", "apply", file).code == 2


POOLS = """\
pools:
  east:
    backend: here
    gpus: {guarantee: 4, limit: 8, weight: 1}
  west:
    backend: here
"""


def test_applying_a_pool_says_which_fields_change_and_how(hall: ServiceFixture) -> None:
    assert hall.call("pool", "apply", hall.file("two.yaml", POOLS)).out == "east: created.\nwest: created.\n"

    levels = "    topology_keys:\n    - {key: rack, label: topology.kubernetes.io/rack}\n"
    text = POOLS.replace("limit: 8", "limit: 12").replace(
        "west:\n    backend: here\n", f"west:\n    backend: here\n{levels}"
    )
    done = hall.call("pool", "apply", hall.file("two.yaml", text))

    assert done.out.splitlines() == [
        "east: changed.",
        "  gpus.limit: 8 → 12",
        "west: changed.",
        "  topology_keys: none → rack",
    ]
    assert hall.call("pool", "delete", "east").code == hall.call("pool", "delete", "west").code == 0


def test_faults_of_pools_are_shown_with_their_lines_and_change_nothing(hall: ServiceFixture) -> None:
    text = POOLS.replace("limit: 8", "limits: 8").replace("  west:\n    backend: here", "  west:\n    backend: nowhere")
    done = hall.call("pool", "apply", hall.file("wrong.yaml", text))

    assert done.code == 3
    assert "wrong.yaml:4:" in done.err
    assert "4 |     gpus: {guarantee: 4, limits: 8, weight: 1}\n  |                          ^^^^^^\n" in done.err
    assert "wrong.yaml:6:" in done.err
    assert "2 faults in" in done.err
    assert hall.call("pool", "list", "-o", "name").out.split() == ["lab"]


def test_a_file_that_holds_no_pools_is_named_as_what_it_is(hall: ServiceFixture) -> None:
    nodes = hall.file("nodes.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": []}))
    sweep = str(ROOT / "examples" / "12-team" / "workflow.yaml")

    assert "this is a Kubernetes object, not a configuration of" in hall.call("pool", "apply", nodes).err
    assert "this is a workflow, not a configuration of" in hall.call("pool", "apply", sweep).err
    assert "this is a Kubernetes object, not a workflow" in hall.call("submit", nodes).err


def test_a_watched_list_prints_changes_as_json_lines(hall: ServiceFixture) -> None:
    ident = hall.submit("true", name="watched")
    with subprocess.Popen(
        [*PROGRAM, "list", "--watch", "-o", "json", "--server", hall.url],
        stdout=subprocess.PIPE,
        env=environment(),
        text=True,
    ) as process:
        assert process.stdout
        first = json.loads(process.stdout.readline())
        process.terminate()
        process.wait(TIMEOUT_S)

    assert first["type"] == "workflow"
    assert hall.finished(ident) == "COMPLETED"


def test_a_watched_workflow_ends_with_its_result(hall: ServiceFixture) -> None:
    ident = hall.submit("exit 1", name="seen")

    done = hall.call("show", ident, "--watch", "-o", "json")

    assert done.code == 100
    assert json.loads(done.out.splitlines()[-1])["status"] == "FAILED"


@pytest.mark.parametrize(
    ("server", "code"),
    [("http://127.0.0.1:1", 75), ("nonsense", 2), ("ftp://127.0.0.1", 2), ("http://[::1", 2)],
)
def test_a_server_that_is_not_there_is_said_in_two_lines(server: str, code: int) -> None:
    done = call("list", "--server", server)

    assert done.code == code
    assert done.err.startswith("error: ")
    assert len(done.err.splitlines()) == 2


def test_a_service_is_found_by_the_folder_it_keeps(hall: ServiceFixture) -> None:
    done = call("pool", "list", "-o", "name", COTERIE_STATE=str(hall.folder / "state"), COTERIE_SERVER="")

    assert done.out.split()[0] == "lab"


def test_names_from_a_service_never_drive_the_terminal(hall: ServiceFixture) -> None:
    ident = hall.submit("true", "--label", "a=b", name="tame")
    done = hall.call("cancel", ident, "-m", "\x1b[31mred\x07")

    assert done.code in {0, 5}
    hall.call("wait", ident)
    assert escapes(hall.call("show", ident).out) == []


def test_tokens_are_made_shown_once_and_deleted(tmp_path: Path) -> None:
    state = ("--state", tmp_path)
    made = call("token", "create", "ana", "--role", "admin", "--expires", "90d", *state)
    listed = call("token", "list", *state)
    twice = call("token", "create", "ana", *state)
    gone = call("token", "delete", "ana", *state)

    assert "warning[FirstToken]" in made.err
    assert "warning" not in twice.err
    assert made.out.startswith("coterie_")
    assert made.out.strip() not in listed.out
    assert "ana" in listed.out
    assert twice.code == 5
    assert gone.code == 0
    assert call("token", "delete", "ana", *state).code == 4
    assert call("token", "create", "bob", "--role", "king", *state).code == 2


def test_a_service_with_tokens_asks_for_one(tmp_path: Path) -> None:
    token = call("token", "create", "ana", "--role", "viewer", "--state", tmp_path).out.strip()
    with served(tmp_path) as (url, _):
        without = call("list", "--server", url)
        looking = call("list", "--server", url, "--token", token)
        (tmp_path / "wf.yaml").write_text(flow(gpus=0).replace("topology: [{key: rack}]", "cpu: 0"), encoding="utf-8")
        changing = call("submit", tmp_path / "wf.yaml", "--server", url, "--token", token)

    assert without.code == 1
    assert "--token" in without.err
    assert looking.code == 0
    assert changing.code == 1
    assert token not in changing.err
    assert list(tmp_path.glob("service.*")) == []


def test_a_public_address_without_tokens_is_refused(tmp_path: Path) -> None:
    done = spawn("serve", "--host", "0.0.0.0", "--port", "0", "--state", tmp_path)  # noqa: S104 - it must be refused

    assert done.code == 2
    assert "coterie token create" in done.err


def test_commands_that_only_ask_load_nothing_heavy_for_what_they_are_told(hall: ServiceFixture) -> None:
    ident = hall.submit(name="told")
    assert hall.finished(ident) == "COMPLETED"
    calls = [("list", "-o", "wide"), ("pool", "list"), ("pool", "show", "lab"), ("topology", "show", "lab")]
    calls += [(word, ident) for word in ("show", "why", "logs", "events", "wait")]

    codes, found = loaded(*calls, COTERIE_SERVER=hall.url)

    assert codes == [0] * len(calls)
    assert set(found) <= {"pydantic"}  # which is Typer's


def test_help_of_every_command_loads_no_client_and_no_server() -> None:
    heavy = {"httpx2", "fastapi", "uvicorn", "sqlalchemy", "rich.live", "numpy"}
    script = (
        "import sys\n"
        "from coterie.cli import main\n"
        "for words in (['run'], ['submit'], ['pool', 'apply'], ['token', 'create'], ['serve']):\n"
        "    sys.argv = ['coterie', *words, '--help']\n"
        "    try:\n        main()\n    except SystemExit as end:\n        assert end.code == 0\n"
        f"print('loaded', sorted(set(sys.modules) & {heavy!r}))\n"
    )
    done = subprocess.run(
        [PROGRAM[0], "-c", script], capture_output=True, text=True, env=environment(), check=True, timeout=TIMEOUT_S
    )

    assert done.stdout.splitlines()[-1] == "loaded []"


@pytest.mark.parametrize(("answer", "code"), [("", 130), ("x\nc", 0)])
def test_who_interrupts_what_they_follow_is_asked_and_leaves_it_by_default(
    hall: ServiceFixture, answer: str, code: int
) -> None:
    name = f"asked{code}"
    flag = hall.folder / f"{name}.flag"
    file = hall.file(f"{name}.yaml", flow(f"while ! test -e {flag}; do sleep 0.1; done", name=name))
    with at_terminal("submit", file, "--follow", COTERIE_SERVER=hall.url) as (process, terminal):
        read_until(terminal, "RUNNING")
        process.send_signal(signal.SIGINT)
        read_until(terminal, "[D]etach, [s]top it, [c]ontinue? ")
        for key in answer.split("\n"):
            os.write(terminal, f"{key}\n".encode())
            read_until(terminal, "not one of D, s, c" if key == "x" else key)
        if code == 0:
            flag.touch()
        read_until(terminal, None)
        process.wait(TIMEOUT_S)
    flag.touch()

    assert process.returncode == code
    assert hall.finished(f"{name}-1") == "COMPLETED"


def test_a_workflow_that_can_never_run_says_so_at_once_with_ways_out(hall: ServiceFixture) -> None:
    file = hall.file("never.yaml", flow(name="never", tasks=3, gpus=8))

    done = hall.call("submit", file)
    as_data = hall.call("submit", file, "-o", "json")

    assert (done.code, as_data.code) == (7, 7)
    assert "way out" in done.out
    assert "--tasks g=2" in done.out
    assert "error: it can never run in its pool as it is now" in done.err
    assert "--force" in done.err
    assert json.loads(as_data.out)["errors"][0]["code"] == "NeverFits"
    assert hall.data("list", "--name", "never") == []


def test_a_list_tells_what_can_never_run_from_what_waits_for_room(hall: ServiceFixture) -> None:
    blocker = hall.submit(LONG, name="holds", tasks=2, gpus=8)
    hall.call("wait", blocker, "--for", "running", "--timeout", "2m")
    later = hall.submit("echo later", name="notnow", tasks=2, gpus=8)
    never = hall.submit("echo never", "--force", name="nope", tasks=3, gpus=8)
    eventually(lambda: {row["id"] for row in hall.data("list", "--active") if row["waiting"]} >= {later, never})
    listed = {line.split()[0]: line for line in hall.call("list", "--active").out.splitlines()}
    shown = hall.call("show", never, "-o", "wide").out
    flags = {row["id"]: row["waiting"]["never"] for row in hall.data("list", "--active") if row["waiting"]}
    hall.call("cancel", blocker, later, never, "--force", "-y")

    assert listed[never].endswith("never (NeverFits)")
    assert listed[later].endswith("NoCapacity")
    assert "never (NeverFits): no rack is large enough" in shown
    assert (flags[later], flags[never]) == (False, True)


def test_submitting_with_the_option_of_a_way_out_says_what_it_changes(hall: ServiceFixture) -> None:
    file = hall.file("out.yaml", flow(name="out", tasks=3, gpus=8))

    dry = hall.call("submit", file, "--dry-run", "--prefer", "rack")
    (copied,) = [line.removeprefix("Submit with: ") for line in dry.err.splitlines() if line.startswith("Submit with")]
    done = hall.call(*copied.split()[1:])

    assert dry.code == 0
    assert "--prefer rack" in copied
    assert done.code == 0, done.err
    assert "changed: rack is preferred instead of required" in done.err
    ident = done.out.strip()
    assert hall.finished(ident) == "COMPLETED"
    assert "  changed: rack is preferred instead of required" in hall.call("show", ident).out.splitlines()


def test_that_images_are_not_used_is_said_once_at_submission(hall: ServiceFixture) -> None:
    words = "image is ignored: commands run on this machine, not in containers"

    done = hall.call("submit", hall.file("pictures.yaml", flow(name="pictures", tasks=2)))

    assert done.err.count(words) == 1
    assert words not in hall.call("show", done.out.strip()).err
