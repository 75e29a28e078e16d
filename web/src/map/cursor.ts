// Moves of the keyboard's cursor over the nodes of a map.
import type { Layout, NodeBox } from './layout'

const MOVES: Record<string, [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
}

/** The nearest node in the direction of a key; the first one where there is no cursor yet. */
export function neighbour(layout: Layout, cursor: number, key: string): NodeBox | null {
  if (key === 'Home') return layout.nodes[0] ?? null
  if (key === 'End') return layout.nodes[layout.nodes.length - 1] ?? null
  const move = MOVES[key]
  if (!move) return null
  const from = layout.nodes[cursor]
  if (!from) return layout.nodes[0] ?? null
  let best: NodeBox | null = null
  let least = Infinity
  for (const each of layout.nodes) {
    const along = (each.x - from.x) * move[0] + (each.y - from.y) * move[1]
    if (along <= 1) continue
    const across = Math.abs((each.x - from.x) * move[1]) + Math.abs((each.y - from.y) * move[0])
    const distance = along + 4 * across
    if (distance < least) [best, least] = [each, distance]
  }
  return best ?? from
}
