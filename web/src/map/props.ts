// What both drawings of a map are given, as elements or on a canvas.
import type { Focus } from './focus'
import type { Layout } from './layout'
import type { MapNode } from './model'
import type { Palette } from './palette'
import type { View } from './view.svelte'

export interface MapProps {
  layout: Layout
  palette: Palette
  view: View
  focus: Focus
  /** Counts the changes of the nodes. */
  tick: number
  /** The GPUs of a task whose room is told. */
  size: number
  /** The index of the node under the keyboard's cursor. */
  cursor: number
  width: number
  height: number
  /** The nodes that the last change was about; null for all. */
  changed: readonly MapNode[] | null
  label: string
  select: (node: MapNode, holder: number) => void
}
