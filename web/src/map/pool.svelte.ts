// One pool on the map: its live nodes, the paints of its holders, and what is drawn over them.
import { CONNECTING, get, segment } from '../api/client'
import type { Assignment, Audited, NodeMap, Placement } from '../api/types'
import type { Outline } from './focus'
import { type Gang, MapModel, type MapNode } from './model'
import { Palette } from './palette'
import { MapStream } from './stream.svelte'

const WORDS = { held: 'held', missed: 'missed', violated: 'violated', unobservable: 'not observable' }

export class LivePool {
  model = $state.raw<MapModel | null>(null)
  /** Counts the changes, so that what depends on the nodes is drawn again. */
  tick = $state(0)
  /** The nodes that the last change was about; null for all. */
  changed: readonly MapNode[] | null = null
  outlines = $state.raw<ReadonlyMap<number, Outline>>(new Map())
  ghosts = $state.raw<ReadonlyMap<string, number>>(new Map())
  readonly palette = new Palette()
  #stream: MapStream | null = null

  /** Follow a pool, or show the nodes of a moment. */
  constructor(
    readonly pool: string,
    readonly fixed?: NodeMap,
  ) {
    if (fixed) this.show(fixed)
    else this.#stream = new MapStream(
      pool,
      (map) => this.show(map),
      (nodes) => {
        this.changed = this.model?.apply(nodes) ?? null
        this.#changed()
      },
    )
  }

  get state() {
    if (!this.#stream) return 'snapshot'
    if (this.#stream.state !== 'live' || !this.unreachable) return this.#stream.state
    return this.unreachable === CONNECTING ? 'pending' : 'outdated'
  }

  /** Why the cluster is not reached; empty while it is. */
  get unreachable() {
    return this.#stream?.unreachable ?? ''
  }

  get reason() {
    return this.#stream?.reason ?? ''
  }

  get error() {
    return this.#stream?.error ?? null
  }

  show(map: NodeMap): void {
    this.changed = null
    this.model = new MapModel(map)
    this.#changed()
  }

  close(): void {
    this.#stream?.close()
  }

  /** Outline the domains of a gang's constraints, each with its outcome. */
  async outline(gang: Gang | null, signal: AbortSignal): Promise<void> {
    this.outlines = new Map()
    if (!gang || gang.group === null || this.fixed) return
    try {
      const found = await get<Placement>(`workflows/${segment(gang.owner)}/placement`, {}, signal)
      if (signal.aborted || found.pool !== this.pool) return
      const group = found.groups.find((each) => each.name === gang.group)
      this.outlines = new Map((group?.constraints ?? []).flatMap((each) => this.#outlined(each)))
    } catch {
      // The workflow is gone, or is not one of this service: there is nothing to outline.
    }
  }

  /** Mark the GPUs that the tasks of a plan would take. */
  plan(assignments: readonly Assignment[]): void {
    const found = new Map<string, number>()
    for (const { node, gpus, runs } of assignments) if (!runs) found.set(node, (found.get(node) ?? 0) + gpus)
    this.ghosts = found
  }

  #outlined(constraint: Audited): [number, Outline][] {
    const words = `${constraint.type} ${constraint.level}: ${WORDS[constraint.outcome]}`
    return constraint.domains.flatMap((path): [number, Outline][] => {
      const domain = this.model?.at(path)
      return domain && domain.index >= 0 ? [[domain.index, { outcome: constraint.outcome, words }]] : []
    })
  }

  #changed(): void {
    if (this.model) this.palette.update(this.model.holders)
    this.tick += 1
  }
}
