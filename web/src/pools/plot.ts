// A small plot of values over time: steps of equal length, with gaps where there is no value.
import type { HistoryPoint } from '../api/types'

export interface Step {
  /** The beginning of the step, in milliseconds. */
  at: number
  value: number | null
}

export interface Span {
  from: number
  to: number
  /** The length of a step, in milliseconds. */
  step: number
}

export const WIDTH = 240
export const HEIGHT = 64

export function steps(points: readonly HistoryPoint[], value: (point: HistoryPoint) => number | null): Step[] {
  return points.map((point) => ({ at: Date.parse(point.at), value: value(point) }))
}

/** The outlines of the values: one line for each run of steps without a gap, and the area below each. */
export function drawn(found: readonly Step[], span: Span, most: number): { line: string; area: string } {
  const lines: string[] = []
  const areas: string[] = []
  const x = (at: number) => clamp(((at - span.from) / (span.to - span.from)) * WIDTH, WIDTH).toFixed(1)
  const y = (value: number) => (HEIGHT - clamp((value / most) * HEIGHT, HEIGHT)).toFixed(1)
  for (const run of runs(found, span.step)) {
    const start = x(run[0]!.at)
    const tops = run.map(({ at, value }) => `V${y(value)}H${x(at + span.step)}`).join('')
    lines.push(`M${start},${y(run[0]!.value)}${tops}`)
    areas.push(`M${start},${HEIGHT}${tops}V${HEIGHT}Z`)
  }
  return { line: lines.join(''), area: areas.join('') }
}

function runs(found: readonly Step[], step: number): { at: number; value: number }[][] {
  const all: { at: number; value: number }[][] = []
  let end = NaN
  for (const { at, value } of found) {
    if (value === null) continue
    if (at !== end) all.push([])
    all.at(-1)!.push({ at, value })
    end = at + step
  }
  return all
}

function clamp(value: number, most: number): number {
  return Math.min(most, Math.max(0, value))
}

/** A round number that is not smaller. */
export function ceiling(value: number, units: readonly number[]): number {
  return units.find((unit) => unit >= value) ?? Math.ceil(value / units.at(-1)!) * units.at(-1)!
}
