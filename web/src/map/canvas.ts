// The map on a canvas, for large pools: what is too small to see is not drawn, racks stand for their nodes and nodes
// for their GPUs.
import type { Focus } from './focus'
import {
  CELL,
  CELL_TOP,
  DOMAIN_HEAD,
  type DomainBox,
  GAP,
  ghostCells,
  type Layout,
  type NodeBox,
  type Rect,
  runs,
} from './layout'
import { type Domain, type MapNode, overfull, signOf } from './model'
import { type Palette, type Paint } from './palette'
import type { View } from './view.svelte'
import { headline, labelOf } from './words'

/** The size of a title, and the least size at which it can be read. */
const TITLE = 12.5
const READABLE = 7

export type Detail = 'gpus' | 'nodes' | 'domains'

export function detailAt(scale: number): Detail {
  if (CELL * scale >= 6) return 'gpus'
  return 30 * scale >= 3 ? 'nodes' : 'domains'
}

export interface Colours {
  panel: string
  inset: string
  line: string
  text: string
  faint: string
  free: string
  out: string
  warn: string
  bad: string
  good: string
  accent: string
  outline: string
}

export function coloursOf(element: Element): Colours {
  const style = getComputedStyle(element)
  const read = (name: string) => style.getPropertyValue(`--${name}`).trim()
  const names = ['panel', 'inset', 'line', 'text', 'faint', 'free', 'out', 'warn', 'bad', 'good', 'accent', 'outline']
  return Object.fromEntries(names.map((name) => [name, read(name)])) as unknown as Colours
}

const patterns = new Map<string, CanvasPattern | string>()

function filled(context: CanvasRenderingContext2D, paint: Paint): CanvasPattern | string {
  if (!paint.hatch) return paint.colour
  const key = `${paint.colour} ${paint.hatch}`
  const known = patterns.get(key)
  if (known) return known
  const tile = document.createElement('canvas')
  tile.width = tile.height = 8
  const brush = tile.getContext('2d')!
  brush.fillStyle = paint.colour
  brush.fillRect(0, 0, 8, 8)
  brush.globalAlpha = 0.55
  brush.strokeStyle = paint.ink
  brush.lineWidth = 1.2
  brush.stroke(new Path2D(paint.hatch))
  const made = context.createPattern(tile, 'repeat') ?? paint.colour
  patterns.set(key, made)
  return made
}

/** The view that a canvas shows, the part of it that is outside of the frame, and its pixels a point. */
export interface Shown {
  x: number
  y: number
  scale: number
  left: number
  top: number
  ratio: number
}

export interface Drawing {
  layout: Layout
  palette: Palette
  shown: Shown
  focus: Focus
  colours: Colours
  size: number
  cursor: number
  width: number
  height: number
}

/** The boxes that are drawn between two looks at the clock. */
const STEP = 24

/** Draw all, the racks before their nodes, with a pause after every few boxes. */
export function* picture(context: CanvasRenderingContext2D, drawing: Drawing): Generator<void> {
  const frame = begin(context, drawing)
  context.clearRect(frame.x, frame.y, frame.width, frame.height)
  yield
  yield* drawPart(context, drawing, frame, drawing.layout.domains, drawing.layout.nodes)
}

/** Draw the finest domains of some nodes again, and the titles of those around them. */
export function patch(context: CanvasRenderingContext2D, drawing: Drawing, changed: readonly MapNode[]): void {
  const frame = begin(context, drawing)
  for (const { area, domains, nodes } of touched(drawing.layout, changed)) {
    if (!meets(area, frame)) continue
    context.save()
    context.beginPath()
    context.rect(area.x, area.y, area.width, area.height)
    context.clip()
    for (const _ of drawPart(context, drawing, area, domains, nodes));
    context.restore()
  }
}

/** Give the context the position and scale of a drawing; return the part of the map that it shows. */
function begin(context: CanvasRenderingContext2D, { shown, width, height }: Drawing): Rect {
  context.setTransform(shown.ratio, 0, 0, shown.ratio, 0, 0)
  context.translate(shown.x + shown.left, shown.y + shown.top)
  context.scale(shown.scale, shown.scale)
  return {
    x: -(shown.x + shown.left) / shown.scale,
    y: -(shown.y + shown.top) / shown.scale,
    width: (width + 2 * shown.left) / shown.scale,
    height: (height + 2 * shown.top) / shown.scale,
  }
}

interface Part {
  area: Rect
  domains: DomainBox[]
  nodes: NodeBox[]
}

/** The parts that must be drawn again: the finest box around each node, and the titles of the coarser ones. */
function* touched(layout: Layout, nodes: readonly MapNode[]): Generator<Part> {
  const homes = new Set(nodes.map((node) => node.home))
  const above = new Set<Domain>()
  for (const home of homes) for (let at: Domain | null = home; at; at = at.parent) above.add(at)
  for (const box of layout.domains) {
    const { domain } = box
    if (!above.has(domain)) continue
    const finest = box.lacks || !domain.domains.length
    if (!finest) {
      yield { area: { x: box.x, y: box.y, width: box.width, height: DOMAIN_HEAD }, domains: [box], nodes: [] }
    } else if (homes.has(domain)) {
      yield { area: box, domains: [box], nodes: domain.own.map((node) => layout.nodes[node.index]!) }
    }
  }
  // Nodes outside of all domains stand for themselves.
  for (const node of nodes) {
    if (node.home.index >= 0) continue
    const box = layout.nodes[node.index]!
    yield { area: box, domains: [], nodes: [box] }
  }
}

function* drawPart(
  context: CanvasRenderingContext2D,
  drawing: Drawing,
  frame: Rect,
  domains: readonly DomainBox[],
  nodes: readonly NodeBox[],
): Generator<void> {
  const detail = detailAt(drawing.shown.scale)
  let count = 0
  for (const box of domains) {
    if (!meets(box, frame)) continue
    drawDomain(context, drawing, box, detail)
    if (++count % STEP === 0) yield
  }
  context.setLineDash([])
  if (detail !== 'domains') {
    for (const box of nodes) {
      if (!meets(box, frame)) continue
      if (detail === 'gpus') drawGpus(context, drawing, box)
      else drawNode(context, drawing, box)
      if (++count % STEP === 0) yield
    }
  }
  context.globalAlpha = 1
  yield* drawSigns(context, drawing, frame)
  if (detail === 'domains' && drawing.focus.active) frameFinest(context, drawing, frame, domains)
}

/** Frame the finest domains that are looked at: where they are only a few pixels wide, dimming the rest is not enough. */
function frameFinest(context: CanvasRenderingContext2D, drawing: Drawing, frame: Rect, domains: readonly DomainBox[]): void {
  for (const box of domains) {
    const finest = box.lacks || !box.domain.domains.length
    if (finest && drawing.focus.box(box) && meets(box, frame)) frameOf(context, drawing, box)
  }
}

/** Names of the finest domains that are large enough for one, where the titles of all are too small to read. */
function* drawSigns(context: CanvasRenderingContext2D, drawing: Drawing, frame: Rect): Generator<void> {
  const { layout, shown, colours, focus } = drawing
  const { scale } = shown
  if (TITLE * scale >= READABLE) return
  const fits = (box: Rect) => box.width * scale >= 52 && box.height * scale >= 40
  const level = Math.max(-1, ...layout.tiers.map((boxes, at) => (boxes.some(fits) ? at : -1)))
  context.textAlign = 'left'
  let count = 0
  for (const box of layout.tiers[level] ?? []) {
    if (!fits(box) || !meets(box, frame)) continue
    if (++count % STEP === 0) yield
    const point = 1 / scale
    const { name, used } = labelOf(box, box.width * scale >= 74)
    const tall = box.height * scale >= 52 && box.width * scale >= 74
    const fonts = { name: `650 ${11.5 * point}px system-ui, sans-serif`, used: `${10.5 * point}px system-ui, sans-serif` }
    const widthOf = (text: string, font: string) => {
      context.font = font
      return context.measureText(text).width
    }
    const words = Math.max(tall ? widthOf(used, fonts.used) : 0, widthOf(name, fonts.name))
    const width = Math.min(box.width - 6 * point, words + 10 * point)
    context.globalAlpha = focus.box(box) ? 0.92 : 0.5
    context.fillStyle = colours.panel
    context.fillRect(box.x + 3 * point, box.y + 3 * point, width, (tall ? 32 : 18) * point)
    context.globalAlpha = 1
    context.fillStyle = colours.text
    context.fillText(name, box.x + 8 * point, box.y + 16 * point, width - 10 * point)
    if (!tall) continue
    context.fillStyle = colours.faint
    context.font = fonts.used
    context.fillText(used, box.x + 8 * point, box.y + 29 * point, width - 10 * point)
  }
}

const MARKS = { held: 'good', missed: 'warn', unobservable: 'warn', violated: 'bad' } as const

function drawDomain(context: CanvasRenderingContext2D, drawing: Drawing, box: DomainBox, detail: Detail): void {
  const { layout, shown: view, focus, colours } = drawing
  const { domain } = box
  const leaf = !domain.domains.length || Boolean(box.lacks)
  const mark = box.lacks ? undefined : focus.outlines.get(domain.index)
  context.globalAlpha = focus.box(box) ? 1 : 0.35
  context.fillStyle = domain.level % 2 ? colours.inset : colours.panel
  context.strokeStyle = mark ? colours[MARKS[mark.outcome]] : colours.line
  // The borders of coarse domains stay visible where all of them are small.
  const border = detail === 'gpus' ? 1 : Math.max(1, layout.tiers.length - domain.level)
  context.lineWidth = (mark ? 3 : border) / view.scale
  context.setLineDash(box.lacks ? [5 / view.scale, 4 / view.scale] : [])
  context.fillRect(box.x, box.y, box.width, box.height)
  if (leaf && detail === 'domains' && domain.gpus) {
    // A bar from below: what is used of the domain.
    const part = Math.min(1, domain.used / domain.gpus)
    context.fillStyle = colours.free
    context.fillRect(box.x, box.y, box.width, box.height)
    context.fillStyle = colours.accent
    context.fillRect(box.x, box.y + box.height * (1 - part), box.width, box.height * part)
  }
  context.strokeRect(box.x, box.y, box.width, box.height)
  drawTitle(context, drawing, box, leaf)
}

function drawTitle(
  context: CanvasRenderingContext2D,
  drawing: Drawing,
  box: DomainBox,
  leaf: boolean,
): void {
  const { shown, colours, size } = drawing
  // Titles of coarse domains stay readable when the map is small.
  const grow = leaf ? 1 : Math.min(2.2, Math.max(1, 0.9 / shown.scale))
  if (TITLE * shown.scale < READABLE) return
  const words = headline(box, size, 0)
  context.textAlign = 'left'
  context.fillStyle = colours.text
  context.font = `650 ${TITLE * grow}px system-ui, sans-serif`
  context.fillText(words.name, box.x + 8, box.y + 15, box.width - 16)
  if (grow > 1.15) return
  context.fillStyle = colours.faint
  context.font = '11px system-ui, sans-serif'
  const mark = box.lacks ? undefined : drawing.focus.outlines.get(box.domain.index)
  context.fillText(mark?.words ?? words.numbers, box.x + 8, box.y + 29, box.width - 16)
}

function alphaOf(drawing: Drawing, node: MapNode): number {
  return drawing.focus.active && !drawing.focus.node(node, 0) ? 0.2 : 1
}

function edgeOf({ colours }: Drawing, node: MapNode): string {
  if (node.status === 'cordoned') return colours.warn
  return node.status === 'not_ready' || overfull(node) ? colours.bad : colours.line
}

/** A node as one square, filled by the share of each of its holders. */
function drawNode(context: CanvasRenderingContext2D, drawing: Drawing, box: NodeBox): void {
  const { palette, colours, cursor, focus } = drawing
  const { node } = box
  context.globalAlpha = alphaOf(drawing, node)
  context.fillStyle = node.status === 'ready' ? colours.free : node.status === 'cordoned' ? colours.warn : colours.bad
  context.fillRect(box.x, box.y, box.width, box.height)
  let left = box.x
  for (const each of node.held) {
    const width = (box.width * each.gpus) / Math.max(1, node.gpus, node.used)
    context.fillStyle = filled(context, palette.of(each.owner))
    context.fillRect(left, box.y, width, box.height)
    left += width
  }
  if (overfull(node)) {
    context.strokeStyle = colours.bad
    context.lineWidth = 4
    context.strokeRect(box.x + 2, box.y + 2, box.width - 4, box.height - 4)
  }
  if (cursor === node.index || focus.chosen === node.name || focus.ghosts.has(node.name)) frameOf(context, drawing, box)
}

function drawGpus(context: CanvasRenderingContext2D, drawing: Drawing, box: NodeBox): void {
  const { palette, colours, shown: view, focus, cursor } = drawing
  const { node } = box
  const alpha = alphaOf(drawing, node)
  context.globalAlpha = alpha
  context.fillStyle = colours.panel
  context.strokeStyle = edgeOf(drawing, node)
  context.lineWidth = 1
  context.fillRect(box.x, box.y, box.width, box.height)
  context.strokeRect(box.x, box.y, box.width, box.height)
  if (view.scale > 0.6) {
    context.font = '10px system-ui, sans-serif'
    context.textAlign = 'left'
    context.fillStyle = colours.faint
    context.fillText(`${node.short} ${signOf(node)}`, box.x + 4, box.y + 11, box.width - 8)
  }
  for (const run of runs(box)) {
    const holder = node.held[run.holder]
    const lit = holder && focus.gang ? focus.task(holder) : true
    context.globalAlpha = lit ? alpha : 0.2
    context.fillStyle = holder
      ? filled(context, palette.of(holder.owner))
      : node.status === 'ready'
        ? colours.free
        : colours.out
    for (let at = 0; at < run.count; at += 1) {
      const x = box.x + run.x + at * (box.cell + GAP)
      context.fillRect(x, box.y + CELL_TOP, box.cell, CELL)
    }
  }
  context.globalAlpha = 1
  context.strokeStyle = colours.accent
  context.lineWidth = 2
  for (const x of ghostCells(box, focus.ghosts.get(node.name) ?? 0)) {
    context.strokeRect(box.x + x + 1, box.y + CELL_TOP + 1, box.cell - 2, CELL - 2)
  }
  if (cursor === node.index || focus.chosen === node.name) frameOf(context, drawing, box)
}

function frameOf(context: CanvasRenderingContext2D, drawing: Drawing, box: Rect): void {
  context.globalAlpha = 1
  context.strokeStyle = drawing.colours.accent
  context.lineWidth = Math.max(2.5, 2 / drawing.shown.scale)
  context.strokeRect(box.x, box.y, box.width, box.height)
}

function meets(box: Rect, frame: Rect): boolean {
  return (
    box.x < frame.x + frame.width &&
    box.x + box.width > frame.x &&
    box.y < frame.y + frame.height &&
    box.y + box.height > frame.y
  )
}

/** The node at a point of the frame, and its holder there, -1 for none. */
export function hit(layout: Layout, view: View, x: number, y: number): { node: MapNode; holder: number } | null {
  const at = { x: (x - view.x) / view.scale, y: (y - view.y) / view.scale, width: 0, height: 0 }
  const box = layout.nodes.find((each) => meets(each, at))
  if (!box) return null
  const inner = at.x - box.x
  const run = runs(box).find((each) => inner >= each.x && inner < each.x + each.count * (box.cell + GAP))
  const low = at.y - box.y >= CELL_TOP || detailAt(view.scale) !== 'gpus'
  return { node: box.node, holder: low && run ? run.holder : -1 }
}
