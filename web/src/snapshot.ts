// The nodes of a moment, which a file or a command has put into the page: there is no service then, and nothing to ask.
import type { NodeMap } from './api/types'

export interface Snapshot {
  source: string
  written: string
  notices: string[]
  /** The first selection, as the query of an address. */
  query: string
  map: NodeMap
}

const found = document.getElementById('snapshot')?.textContent

export const snapshot: Snapshot | null = found ? (JSON.parse(found) as Snapshot) : null
