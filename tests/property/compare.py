"""Compare the engine with the exact solver on any number of worlds.

    python -m tests.property.compare --count 10000 [--seed N] [--jobs 2]

Worlds are numbered by their seeds, from --seed on, and families take turns. An interrupted comparison says how to go
on. `--count 1 --seed N` shows one world, made as small as it goes if the engine is wrong about it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tests.property.judge import Verdict, judge, shrunk
from tests.property.worlds import world


@dataclass
class Tally:
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


def verdicts(seeds: Sequence[int], jobs: int) -> Iterator[Verdict]:
    """Yield the verdicts in the order of the seeds."""
    if jobs <= 1:
        yield from map(_judge_seed, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(_judge_seed, seeds, chunksize=4)


def _judge_seed(seed: int) -> Verdict:
    return judge(world(seed))


def compare(found: Iterable[Verdict], tally: Tally, count: int) -> None:
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


def show(seed: int) -> None:
    """Print one world, made as small as it goes if the engine is wrong about it."""
    asked = world(seed)
    verdict = judge(asked)
    sys.stdout.write(f"{asked}\n")
    if verdict.wrong:
        small = shrunk(asked, verdict)
        sys.stdout.write(f"{'; '.join(verdict.wrong)}\nand smaller: {'; '.join(judge(small).wrong)}\n{small}\n")


def main() -> int:
    """Run the comparison; return 1 if there is any disagreement."""
    options = argparse.ArgumentParser(prog="python -m tests.property.compare", description=__doc__)
    options.add_argument("--count", type=int, default=1000, help="how many worlds (default: %(default)s)")
    options.add_argument("--seed", type=int, default=0, help="the first seed (default: %(default)s)")
    options.add_argument("--jobs", type=int, default=2, help="how many processes (default: %(default)s)")
    given = options.parse_args()
    if given.count == 1:
        show(given.seed)
    tally = Tally()
    try:
        compare(verdicts(range(given.seed, given.seed + given.count), given.jobs), tally, given.count)
    except KeyboardInterrupt:
        rest = f"--count {given.count - tally.worlds} --seed {given.seed + tally.worlds}"
        sys.stderr.write(f"interrupted; go on with: python -m tests.property.compare {rest}\n")
        return 130
    finally:
        sys.stdout.write(f"{tally}\n")
    if tally.slowest is not None:
        sys.stderr.write(f"slowest: {tally.slowest.name}, {tally.slowest.seconds:.2f} s, {tally.slowest.steps} steps\n")
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
