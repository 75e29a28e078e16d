// The groups of a workflow in columns: each to the right of all that it needs.
import type { Group } from '../api/types'

export const BOX = { width: 170, height: 46, gapX: 56, gapY: 14 }

export interface Placed {
  group: Group
  x: number
  y: number
}

export function layers(groups: readonly Group[]): { placed: Placed[]; width: number; height: number } {
  const depth = new Map<string, number>()
  // A group comes after those that it needs, so as many rounds as there are groups are enough.
  for (let round = 0; round < groups.length; round += 1) {
    let changed = false
    for (const group of groups) {
      const wanted = Math.max(0, ...group.needs.map((name) => (depth.get(name) ?? 0) + 1))
      if (depth.get(group.name) !== wanted) changed = true
      depth.set(group.name, wanted)
    }
    if (!changed) break
  }
  const rows = new Map<number, number>()
  const placed = groups.map((group) => {
    const column = depth.get(group.name) ?? 0
    const row = rows.get(column) ?? 0
    rows.set(column, row + 1)
    return { group, x: column * (BOX.width + BOX.gapX), y: row * (BOX.height + BOX.gapY) }
  })
  const width = (Math.max(0, ...depth.values()) + 1) * (BOX.width + BOX.gapX) - BOX.gapX
  const height = Math.max(1, ...rows.values()) * (BOX.height + BOX.gapY) - BOX.gapY
  return { placed, width, height }
}

export function edge(from: Placed, to: Placed): string {
  const x1 = from.x + BOX.width
  const y1 = from.y + BOX.height / 2
  const y2 = to.y + BOX.height / 2
  const middle = (x1 + to.x) / 2
  return `M${x1},${y1}C${middle},${y1} ${middle},${y2} ${to.x},${y2}`
}
