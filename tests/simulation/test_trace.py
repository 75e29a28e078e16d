"""Traces: their kinds, paces and speeds, and the faults of bad rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.errors import SpecErrors, UsageError
from coterie.simulation.trace import TraceJob, TraceTiming, read_trace

OPENB = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n"
UNTIMED = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        (
            "job,gpus,submit,duration\na,8,0,60\nb,1,5.5,2\n",
            "plain",
            (TraceJob("a", 8, 0, 60), TraceJob("b", 1, 5.5, 2)),
        ),
        ("gpus,submit,duration\n2,0,1\n", "plain", (TraceJob("0", 2, 0, 1),)),
        (
            "job_id,num_gpu,submit_time,iterations,duration\n7,16,2000,1,3000\n8,1,1500,1,500\n",
            "philly",
            (TraceJob("8", 1, 0, 0.5), TraceJob("7", 16, 0.5, 3)),
        ),
        (
            f"{OPENB}p,1,1,4,1000,100,160,110\nq,1,1,1,1000,100,130,\n",
            "openb",
            (TraceJob("p", 4, 0, 50), TraceJob("q", 1, 0, 30)),
        ),
        ("\ufeff gpus , submit , duration \r\n 8 , 0 , 60 \r\n\r\n", "plain", (TraceJob("0", 8, 0, 60),)),
        ("gpus,submit,duration\n8.0,1e1,6e1\n", "plain", (TraceJob("0", 8, 0, 60),)),
        (
            'gpus,submit,duration,note\n8,0,60,"two\nlines"\n1,1,1,\n',
            "plain",
            (TraceJob("0", 8, 0, 60), TraceJob("1", 1, 1, 1)),
        ),
    ],
)
def test_the_header_says_what_kind_of_trace_it_is_and_its_unit_of_time(
    text: str, kind: str, expected: tuple[TraceJob, ...]
) -> None:
    trace = read_trace(text.encode(), "t.csv")

    assert (trace.kind, trace.jobs) == (kind, expected)


def test_a_trace_without_times_takes_its_pace_from_the_caller() -> None:
    trace = read_trace(f"{UNTIMED}a,1,1,1,460\nb,1,1,0,0\nc,1,1,2,1000\n".encode(), "t.csv", TraceTiming(30, 600))

    assert trace.jobs == (TraceJob("a", 1, 0, 600), TraceJob("c", 2, 60, 600))
    assert [notice.code for notice in trace.notices] == ["NoGpus", "SharedGpus", "GpusOnly"]


def test_a_faster_trace_has_the_same_jobs_sooner() -> None:
    trace = read_trace(b"gpus,submit,duration\n8,0,60\n4,100,30\n2,200,30\n", "t.csv")

    assert trace.first(2).faster(4).jobs == (TraceJob("0", 8, 0, 60), TraceJob("1", 4, 25, 30))


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("", 1, None, "empty"),
        ("\n\n", 1, None, "empty"),
        ("gpus,submit,duration\n", 1, None, "no jobs"),
        ("sn,cpu_milli,memory_mib,gpu,model\na,1,1,1,x\n", 1, None, "not the columns"),
        ("gpus,submit,durration\n8,0,1\n", 1, None, 'no column "duration". Did you mean "durration"?'),
        ("num_gpu,duration\n8,1\n", 1, None, 'no column "submit_time"'),
        (f"{UNTIMED}a,1,1,1,1000\n", 1, None, "does not say when"),
        ("gpus,submit,duration\n8,0,1\neight,0,1\n", 3, 1, '"eight" is not a number'),
        ("gpus,submit,duration\n8,0, later\n", 2, 6, '"later" is not a number'),
        ("gpus,submit,duration\n8,0\n", 2, None, 'column "duration": it is empty'),
        ("gpus,submit,duration\n2.5,0,1\n", 2, 1, '"2.5" is not a whole number'),
        ("gpus,submit,duration\n8,-1,1\n", 2, 3, '"-1" is negative'),
        ("gpus,submit,duration\n8,nan,1\n", 2, 3, '"nan" is not a number'),
        ("gpus,submit,duration\n8,0,inf\n", 2, 5, '"inf" is not a number'),
        ("gpus,submit,duration\n8,0,1e300\n", 2, None, "300 years"),
        ("gpus,submit,duration\n99999999999,0,1\n", 2, None, "99,999,999,999 GPUs"),
        (f"{OPENB}p,1,1,4,1000,100,50,\n", 2, None, "deleted before"),
        ('gpus,submit,duration\n8,"0,1\n', 1, None, "not CSV"),
    ],
)
def test_a_bad_trace_is_refused_with_its_line(text: str, line: int, column: int | None, words: str) -> None:
    with pytest.raises(SpecErrors) as raised:
        read_trace(text.encode(), "t.csv")

    (fault,) = raised.value.faults
    assert fault.place
    assert words in fault.message
    assert (fault.place.file, fault.place.line, fault.place.column) == ("t.csv", line, column)


def test_all_bad_rows_are_reported_at_once_but_not_thousands_of_them() -> None:
    with pytest.raises(SpecErrors) as few:
        read_trace(b"gpus,submit,duration\nx,y,1\n1,1,z\n", "t.csv")
    with pytest.raises(SpecErrors) as many:
        read_trace(b"gpus,submit,duration\n" + b"x,1,1\n" * 1000, "t.csv")

    assert [(fault.place and fault.place.line) for fault in few.value.faults] == [2, 2, 3]
    assert len(many.value.faults) == 21
    assert "980 more" in many.value.faults[-1].message


def test_a_pace_for_a_trace_with_times_is_refused() -> None:
    with pytest.raises(UsageError, match="times of its own"):
        read_trace(b"gpus,submit,duration\n8,0,1\n", "t.csv", TraceTiming(1, 1))


@given(
    st.one_of(st.binary(max_size=200), st.text(alphabet='gpus,mitdraon\n"0123-.e\r\0', max_size=200).map(str.encode))
)
def test_no_bytes_whatever_do_more_than_be_refused(data: bytes) -> None:
    for body in (data, b"gpus,submit,duration\n" + data):
        try:
            read_trace(body, "t.csv")
        except SpecErrors as error:
            assert error.faults  # noqa: PT017 - whether it is refused depends on the bytes
