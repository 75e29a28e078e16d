// The part of the map that is looked at: a gang, a search, the domains of constraints, and where a plan would place.
import type { Audited, NodeHolder } from '../api/types'
import type { DomainBox } from './layout'
import { conditions, type Gang, holds, type MapModel, type MapNode } from './model'

export interface Outline {
  outcome: Audited['outcome']
  words: string
}

export class Focus {
  readonly domains = new Set<number>()
  /** The number of nodes that are looked at. */
  readonly found: number = 0
  /** The domains with nodes in it that are in no finer one. */
  readonly #homes = new Set<number>()
  readonly #needle: string

  constructor(
    readonly gang: Gang | null,
    search: string,
    /** The name of the chosen node. */
    readonly chosen: string,
    readonly outlines: ReadonlyMap<number, Outline>,
    /** GPUs that a plan would take, by node. */
    readonly ghosts: ReadonlyMap<string, number>,
    model: MapModel,
    tick: number,
  ) {
    this.#needle = search.trim().toLowerCase()
    if (this.active) {
      for (const node of model.nodes) {
        if (!this.node(node, tick)) continue
        this.found += 1
        this.#homes.add(node.home.index)
        for (let at: typeof node.home | null = node.home; at; at = at.parent) this.domains.add(at.index)
      }
    }
  }

  get active(): boolean {
    return this.gang !== null || this.#needle !== '' || this.ghosts.size > 0
  }

  /** Whether a box has a node that is looked at; one for nodes without a label has only those of its domain itself. */
  box({ domain, lacks }: DomainBox): boolean {
    return !this.active || (lacks ? this.#homes : this.domains).has(domain.index)
  }

  node(node: MapNode, _tick: number): boolean {
    if (this.ghosts.size) return this.ghosts.has(node.name)
    if (this.gang && !node.held.some((each) => this.task(each))) return false
    return !this.#needle || texts(node).some((text) => text.toLowerCase().includes(this.#needle))
  }

  task(holder: NodeHolder): boolean {
    return this.gang === null || holds(this.gang, holder)
  }
}

function texts(node: MapNode): string[] {
  return [node.name, node.short, ...conditions(node), ...node.home.path, ...node.held.flatMap((each) => [each.owner, each.task])]
}
