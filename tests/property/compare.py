"""Compare the engine with the exact solver on any number of worlds.

    python -m tests.property.compare --count 20000 [--family resumed] [--seed N] [--jobs 2]

Each world is also asked about with other names and in another order. Worlds are numbered by their seeds, from --seed
on; without it the first seed is a new one, and printed. Families take turns unless one is named. An interrupted
comparison says how to go on. `--count 1 --seed N` shows one world, made as small as it goes if the engine is wrong
about it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import secrets
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from tests.property.judge import Verdict, judge, shrunk
from tests.property.worlds.random_worlds import FAMILIES, world


@dataclass
class ComparisonCounts:
    """Counts of a comparison so far."""

    worlds: int = 0
    feasible: int = 0
    unproved: int = 0
    slowest: Verdict | None = None
    wrong: list[Verdict] = field(default_factory=list)

    def add(self, verdict: Verdict) -> None:
        """Count one world."""
        self.worlds += 1
        self.feasible += verdict.feasible
        self.unproved += bool(verdict.unproved)
        if self.slowest is None or verdict.seconds > self.slowest.seconds:
            self.slowest = verdict
        if verdict.wrong:
            self.wrong.append(verdict)

    def __str__(self) -> str:
        return (
            f"{self.worlds} worlds: {self.feasible} feasible, {self.worlds - self.feasible} infeasible, "
            f"{len(self.wrong)} disagreements, {self.unproved} not proved"
        )


def verdicts(seeds: Sequence[int], jobs: int, family: str = "") -> Iterator[Verdict]:
    """Yield the verdicts in the order of the seeds."""
    ask = partial(_judge_seed, family=family)
    if jobs <= 1:
        yield from map(ask, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(ask, seeds, chunksize=4)


def _judge_seed(seed: int, family: str) -> Verdict:
    return judge(world(seed, family))


def compare(found: Iterable[Verdict], tally: ComparisonCounts, count: int) -> None:
    """Count verdicts as they come; tell of disagreements and missing proofs at once, of progress now and then."""
    begun = told = time.monotonic()
    for verdict in found:
        tally.add(verdict)
        if verdict.wrong or verdict.unproved:
            told_of = ["DISAGREES", *verdict.wrong] if verdict.wrong else [verdict.unproved]
            sys.stdout.write(f"{verdict.name}: {'; '.join(told_of)}\n")
            sys.stdout.flush()
        now = time.monotonic()
        if now - told > 5 or tally.worlds == count:
            told = now
            sys.stderr.write(f"  {tally} in {now - begun:.0f} s\n")


def show(seed: int, family: str) -> None:
    """Print one world, made as small as it goes if the engine is wrong about it."""
    asked = world(seed, family)
    verdict = judge(asked)
    sys.stdout.write(f"{asked}\n")
    if verdict.wrong:
        small = shrunk(asked, verdict)
        sys.stdout.write(f"{'; '.join(verdict.wrong)}\nand smaller: {'; '.join(judge(small).wrong)}\n{small}\n")


def main() -> int:
    """Run the comparison; return 1 if there is any disagreement."""
    options = argparse.ArgumentParser(prog="python -m tests.property.compare", description=__doc__)
    options.add_argument("--count", type=int, default=1000, help="how many worlds (default: %(default)s)")
    options.add_argument("--seed", type=int, help="the first seed (default: a new one)")
    options.add_argument("--family", choices=FAMILIES, default="", help="worlds of this family only")
    options.add_argument("--jobs", type=int, default=2, help="how many processes (default: %(default)s)")
    given = options.parse_args()
    first = secrets.randbelow(2**32) if given.seed is None else given.seed
    sys.stderr.write(f"seeds from {first} on\n")
    if given.count == 1:
        show(first, given.family)
    tally = ComparisonCounts()
    try:
        compare(verdicts(range(first, first + given.count), given.jobs, given.family), tally, given.count)
    except KeyboardInterrupt:
        family = f"--family {given.family} " if given.family else ""
        rest = f"{family}--count {given.count - tally.worlds} --seed {first + tally.worlds}"
        sys.stderr.write(f"interrupted; go on with: python -m tests.property.compare {rest}\n")
        return 130
    finally:
        sys.stdout.write(f"{tally}\n")
    if tally.slowest is not None:
        sys.stderr.write(f"slowest: {tally.slowest.name}, {tally.slowest.seconds:.2f} s, {tally.slowest.steps} steps\n")
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
