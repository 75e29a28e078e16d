// Positions of domains and nodes: nodes in grids inside the finest domains, and those in rows inside the coarser ones.
import { type Domain, type MapModel, type MapNode } from './model'

export const CELL = 14
export const GAP = 2
const PAD = 8
const NODE_PAD = 3
export const NODE_HEAD = 13
export const DOMAIN_HEAD = 36
const SPACE = 10
const MOST_CELLS = 16
const SIGN = 8

export interface Rect {
  x: number
  y: number
  width: number
  height: number
}

export interface DomainBox extends Rect {
  domain: Domain
  /** The level that the nodes in this box have no label of; empty for a domain. */
  lacks: string
}

export interface NodeBox extends Rect {
  node: MapNode
  /** The width of one GPU. */
  cell: number
}

export interface Layout {
  width: number
  height: number
  domains: DomainBox[]
  /** The domains by their levels. */
  tiers: DomainBox[][]
  nodes: NodeBox[]
  cells: number
}

interface Block {
  width: number
  height: number
  place: (x: number, y: number) => void
}

export function laidOut(model: MapModel, aspect: number): Layout {
  const domains: DomainBox[] = []
  const nodes: NodeBox[] = new Array(model.nodes.length)
  const widest = Math.min(MOST_CELLS, Math.max(1, ...sizes(model)))
  // A sign stands beside the name.
  const label = Math.min(15, longest(model)) * 6.2 + SIGN
  const nodeWidth = Math.max(widest * (CELL + GAP) - GAP, label) + 2 * NODE_PAD
  const nodeHeight = NODE_HEAD + CELL + 2 * NODE_PAD

  function grid(own: MapNode[], most: number): Block {
    const columns = Math.max(1, Math.min(own.length, most))
    const rows = Math.ceil(own.length / columns)
    return {
      width: columns * (nodeWidth + 4) - 4,
      height: rows * (nodeHeight + 4) - 4,
      place(x, y) {
        own.forEach((node, at) => {
          const shown = Math.max(1, Math.min(node.gpus, MOST_CELLS))
          nodes[node.index] = {
            node,
            cell: Math.min(CELL, (nodeWidth - 2 * NODE_PAD + GAP) / shown - GAP),
            x: x + (at % columns) * (nodeWidth + 4),
            y: y + Math.floor(at / columns) * (nodeHeight + 4),
            width: nodeWidth,
            height: nodeHeight,
          }
        })
      },
    }
  }

  function boxed(domain: Domain, lacks: string, inner: Block): Block {
    const width = Math.max(inner.width, 168) + 2 * PAD
    const height = inner.height + DOMAIN_HEAD + PAD
    return {
      width,
      height,
      place(x, y) {
        domains.push({ domain, lacks, x, y, width, height })
        inner.place(x + PAD, y + DOMAIN_HEAD)
      },
    }
  }

  const columnsOf = (count: number, shape: number) =>
    Math.ceil(Math.sqrt((count * nodeHeight * shape) / nodeWidth))

  // The finest domains look the same in every shape that is tried for the coarser ones.
  const finest = new Map<Domain, Block>()

  function block(domain: Domain, shape: number): Block {
    if (domain.domains.length) return boxed(domain, '', inside(domain, shape, shape))
    let found = finest.get(domain)
    if (!found) {
      found = boxed(domain, '', grid(domain.own, columnsOf(domain.own.length, 1.1)))
      finest.set(domain, found)
    }
    return found
  }

  function inside(domain: Domain, shape: number, nested: number): Block {
    const parts = domain.domains.map((each) => block(each, nested))
    if (domain.own.length) {
      const lacks = model.levels[domain.level + 1] ?? ''
      const inner = grid(domain.own, columnsOf(domain.own.length, 1.1))
      parts.push(lacks ? boxed(domain, lacks, inner) : inner)
    }
    return flowed(parts, shape)
  }

  const body = smallest(
    [0.7, 1, 1.5, 2.2].map((nested) => inside(model.root, aspect, nested)),
    aspect,
  )
  body.place(0, 0)
  const cells = model.nodes.reduce((sum, node) => sum + Math.max(1, Math.min(node.gpus, MOST_CELLS)), 0)
  const tiers = model.levels.map((_, level) => domains.filter((box) => box.domain.level === level && !box.lacks))
  return { width: body.width, height: body.height, domains, tiers, nodes, cells }
}

/** Blocks in rows, about `shape` times as wide as high: of several widths, the one that needs the smallest frame. */
function flowed(parts: Block[], shape: number): Block {
  const area = parts.reduce((sum, part) => sum + (part.width + SPACE) * (part.height + SPACE), 0)
  const widest = Math.max(0, ...parts.map((part) => part.width))
  const widths = [0.85, 1, 1.15, 1.3, 1.5, 1.75, 2].map((factor) => Math.max(widest, factor * Math.sqrt(area * shape)))
  return smallest(
    widths.map((room) => inRows(parts, room)),
    shape,
  )
}

/** The block that needs the smallest frame of this shape. */
function smallest(blocks: Block[], shape: number): Block {
  const frame = (block: Block) => Math.max(block.width / shape, block.height)
  return blocks.reduce((best, next) => (frame(next) < frame(best) ? next : best))
}

function inRows(parts: Block[], room: number): Block {
  const rows: Block[][] = []
  let left = 0
  for (const part of parts) {
    if (!rows.length || left + part.width > room) {
      rows.push([])
      left = 0
    }
    rows[rows.length - 1]!.push(part)
    left += part.width + SPACE
  }
  const heights = rows.map((row) => Math.max(0, ...row.map((part) => part.height)))
  const widths = rows.map((row) => row.reduce((sum, part) => sum + part.width + SPACE, -SPACE))
  return {
    width: Math.max(0, ...widths),
    height: heights.reduce((sum, height) => sum + height + SPACE, -SPACE),
    place(x, y) {
      let top = y
      rows.forEach((row, at) => {
        let start = x
        for (const part of row) {
          part.place(start, top)
          start += part.width + SPACE
        }
        top += heights[at]! + SPACE
      })
    },
  }
}

function sizes(model: MapModel): number[] {
  return [...new Set(model.nodes.map((node) => node.gpus))]
}

function longest(model: MapModel): number {
  let found = 0
  for (const node of model.nodes) found = Math.max(found, node.short.length)
  return found
}

/** The x of each GPU of a node, and the holder of each; free ones come last. */
export interface Run {
  holder: number
  x: number
  count: number
}

export function runs(box: NodeBox): Run[] {
  const { node, cell } = box
  const shown = Math.max(1, Math.min(node.gpus, MOST_CELLS))
  // All holders of an overfull node share the GPUs that it has.
  const scale = Math.min(1, shown / Math.max(node.gpus, node.used))
  const found: Run[] = []
  let at = 0
  let total = 0
  node.held.forEach((each, holder) => {
    total += each.gpus
    const end = Math.max(at + 1, Math.round(total * scale))
    // Every later holder keeps a cell, as long as there are any.
    const last = Math.max(at + 1, shown - (node.held.length - holder - 1))
    const count = Math.min(shown, last, end) - at
    if (count > 0) found.push({ holder, x: NODE_PAD + at * (cell + GAP), count })
    at += count
  })
  if (at < shown && node.gpus) found.push({ holder: -1, x: NODE_PAD + at * (cell + GAP), count: shown - at })
  return found
}

/** The x of each GPU that a plan would take on a node: free ones first, others where it assumes that they are given back. */
export function ghostCells(box: NodeBox, gpus: number): number[] {
  const { node, cell } = box
  const shown = Math.max(1, Math.min(node.gpus, MOST_CELLS))
  const count = Math.min(shown, gpus)
  const start = Math.max(0, Math.min(Math.min(node.used, shown), shown - count))
  return Array.from({ length: count }, (_, at) => NODE_PAD + (start + at) * (cell + GAP))
}

export const CELL_TOP = NODE_HEAD + NODE_PAD
