// The position and scale of a map in its frame.
import type { Layout, Rect } from './layout'

const LEAST = 0.01
const MOST = 4

export class View {
  x = $state(0)
  y = $state(0)
  scale = $state(1)

  /** Show the whole map, or as much of its top as stays readable. */
  fit(layout: Layout, width: number, height: number): void {
    if (!width || !layout.width) return
    const margin = 16
    const wide = (width - 2 * margin) / layout.width
    const high = (height - 2 * margin) / layout.height
    this.scale = Math.min(1.5, wide, Math.max(high, layout.cells > 4000 ? 0 : 0.55))
    this.x = Math.max(margin, (width - layout.width * this.scale) / 2)
    this.y = margin
  }

  zoom(factor: number, x: number, y: number): void {
    const next = Math.min(MOST, Math.max(LEAST, this.scale * factor))
    this.x = x - ((x - this.x) * next) / this.scale
    this.y = y - ((y - this.y) * next) / this.scale
    this.scale = next
  }

  pan(x: number, y: number): void {
    this.x += x
    this.y += y
  }

  /** Move so that a rectangle is in the frame. */
  reveal(box: Rect, width: number, height: number): void {
    const left = this.x + box.x * this.scale
    const top = this.y + box.y * this.scale
    const right = left + box.width * this.scale
    const bottom = top + box.height * this.scale
    if (left < 0) this.x -= left - 12
    else if (right > width) this.x -= right - width + 12
    if (top < 0) this.y -= top - 12
    else if (bottom > height) this.y -= bottom - height + 12
  }
}
