// The nodes of a pool in memory: a tree of domains whose sums follow each change of a node.
import type { ListedNode, NodeChange, NodeHolder, NodeMap } from '../api/types'

export interface Sums {
  nodes: number
  gpus: number
  used: number
  free: number
  /** The number of tasks of the model's size that fit now, counted by GPUs alone. */
  room: number
}

export interface Domain extends Sums {
  index: number
  level: number
  /** The name of its level; empty for the whole pool. */
  kind: string
  value: string
  short: string
  path: string[]
  parent: Domain | null
  domains: Domain[]
  /** Nodes that are in this domain and in no finer one. */
  own: MapNode[]
}

export interface MapNode extends ListedNode {
  index: number
  home: Domain
  used: number
  free: number
}

export interface Gang {
  owner: string
  group: string | null
}

const NOTHING: Sums = { nodes: 0, gpus: 0, used: 0, free: 0, room: 0 }

export class MapModel {
  readonly root: Domain
  readonly domains: Domain[]
  readonly nodes: MapNode[]
  readonly levels: string[]
  readonly holders = new Map<string, number>()
  #size = 1
  #usual = 0
  #byName: Map<string, MapNode> | null = null

  constructor(source: NodeMap) {
    this.levels = source.levels.map((level) => level.name)
    this.root = domain(-1, -1, '', source.pool, source.pool, null)
    this.domains = []
    source.domains.forEach((each, index) => {
      const parent = each.parent < 0 ? this.root : this.domains[each.parent]!
      const made = domain(index, each.level, this.levels[each.level]!, each.value, each.short, parent)
      parent.domains.push(made)
      this.domains.push(made)
    })
    this.nodes = source.nodes.map((each, index) => {
      const home = each.domain < 0 ? this.root : this.domains[each.domain]!
      // Written out: for a hundred thousand nodes, a spread takes seconds.
      const { name, short, domain, gpus, status, channel, held } = each
      const node: MapNode = { name, short, domain, gpus, status, channel, held, index, home, used: 0, free: 0 }
      home.own.push(node)
      this.#measure(node)
      this.#add(node, 1)
      return node
    })
  }

  apply(changes: NodeChange[]): MapNode[] {
    return changes.map(({ index, gpus, status, channel, held }) => {
      const node = this.nodes[index]!
      this.#add(node, -1)
      Object.assign(node, { gpus, status, channel, held })
      this.#measure(node)
      this.#add(node, 1)
      return node
    })
  }

  /** Count the room for tasks with this many GPUs each. */
  resize(size: number): void {
    if (size === this.#size) return
    this.#size = size
    for (const each of [this.root, ...this.domains]) each.room = 0
    for (const node of this.nodes) {
      const room = Math.floor(node.free / size)
      for (let at: Domain | null = node.home; room && at; at = at.parent) at.room += room
    }
  }

  /** The number of GPUs that most nodes have. */
  usual(): number {
    this.#usual ||= this.#mostCommon()
    return this.#usual
  }

  #mostCommon(): number {
    const counts = new Map<number, number>()
    for (const node of this.nodes) if (node.gpus) counts.set(node.gpus, (counts.get(node.gpus) ?? 0) + 1)
    return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? 1
  }

  find(name: string): MapNode | undefined {
    if (!name) return undefined
    this.#byName ??= new Map(this.nodes.map((node) => [node.name, node]))
    return this.#byName.get(name)
  }

  at(path: readonly (string | null)[]): Domain | undefined {
    let found: Domain | undefined = this.root
    for (const value of path) found = found?.domains.find((each) => each.value === value)
    return found
  }

  #measure(node: MapNode): void {
    let used = 0
    for (const each of node.held) used += each.gpus
    node.used = used
    node.free = node.status === 'ready' ? Math.max(0, node.gpus - node.used) : 0
  }

  #add(node: MapNode, sign: 1 | -1): void {
    for (let at: Domain | null = node.home; at; at = at.parent) {
      at.nodes += sign
      at.gpus += sign * node.gpus
      at.used += sign * node.used
      at.free += sign * node.free
      at.room += sign * Math.floor(node.free / this.#size)
    }
    for (const each of node.held) {
      const gpus = (this.holders.get(each.owner) ?? 0) + sign * each.gpus
      if (gpus) this.holders.set(each.owner, gpus)
      else this.holders.delete(each.owner)
    }
  }
}

function domain(
  index: number,
  level: number,
  kind: string,
  value: string,
  short: string,
  parent: Domain | null,
): Domain {
  const path = parent ? [...parent.path, value] : []
  return { index, level, kind, value, short, path, parent, domains: [], own: [], ...NOTHING }
}

/** The name of a domain as people read it: `rack r1`, or the value alone where it says its level already. */
export function named(domain: Domain): string {
  if (domain.index < 0) return `pool ${domain.value}`
  const { kind, short } = domain
  return short.toLowerCase().startsWith(kind.toLowerCase()) ? short : `${kind} ${short}`
}

export function holds(gang: Gang, holder: NodeHolder): boolean {
  return holder.owner === gang.owner && (gang.group === null || holder.group === gang.group)
}

/** Whether pods hold more GPUs than a node has, as on one that has lost some. */
export function overfull(node: MapNode): boolean {
  return node.used > node.gpus
}

/** What distinguishes a node from most others, in words. */
export function conditions(node: MapNode): string[] {
  return [
    ...(node.status === 'ready' ? [] : [node.status === 'cordoned' ? 'cordoned' : 'not ready']),
    ...(overfull(node) ? ['overfull'] : []),
    ...(node.channel ? ['NVLink channel taken'] : []),
  ]
}

/** The sign of the most important of these; the same as on the map of the command line. */
export function signOf(node: MapNode): string {
  if (node.status !== 'ready') return node.status === 'cordoned' ? '!' : '*'
  return overfull(node) ? '^' : node.channel ? '◆' : ''
}

/** What a screen reader says about a node. */
export function described(node: MapNode): string {
  const where = node.home.index < 0 ? 'in no domain' : node.home.path.join(' / ')
  const tasks = node.held.map((each) => `${title(each)} ${each.gpus}`).join(', ')
  const words = [`node ${node.name}`, where, ...conditions(node), `${node.used} of ${node.gpus} GPUs used`]
  return `${words.join(', ')}${tasks ? `: ${tasks}` : ''}`
}

export function title(holder: NodeHolder): string {
  return holder.group ? `${holder.owner} / ${holder.task}` : holder.owner || holder.task
}
