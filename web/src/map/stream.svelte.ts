// The nodes of a pool as they change. The browser reconnects by itself after most breaks; after others we do, and in
// either case go on from the last event that was seen.
import { ApiError, address, get, segment } from '../api/client'
import type { ErrorBody, NodeChange, NodeMap } from '../api/types'
import { session } from '../session.svelte'

export type StreamState = 'connecting' | 'live' | 'broken' | 'ended'

const RETRY_MS = 2000
/** The longest time between two tries after the service has refused to show the nodes. */
const MOST_RETRY_MS = 60_000

export class MapStream {
  state = $state<StreamState>('connecting')
  /** Why there will be no more changes. */
  reason = $state('')
  /** The error, where the service refuses to show the nodes. */
  error = $state.raw<ErrorBody | null>(null)
  /** Why the cluster is not reached; empty while it is. */
  unreachable = $state('')
  #source: EventSource | null = null
  #last = ''
  #timer: ReturnType<typeof setTimeout> | undefined
  #pause = RETRY_MS

  constructor(
    readonly pool: string,
    readonly whole: (map: NodeMap) => void,
    readonly change: (nodes: NodeChange[]) => void,
  ) {
    this.#open()
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#source?.close()
    this.#source = null
  }

  #open(): void {
    const source = new EventSource(address(`pools/${segment(this.pool)}/nodes`, { follow: true, after: this.#last }))
    this.#source = source
    source.onopen = () => {
      // What was refused may be refused again in a moment.
      if (!this.error) this.state = 'live'
      this.unreachable = ''
    }
    source.addEventListener('map', (event) => {
      this.state = 'live'
      this.error = null
      this.#pause = RETRY_MS
      this.#last = event.lastEventId
      this.whole(JSON.parse(event.data as string) as NodeMap)
    })
    source.addEventListener('change', (event) => {
      this.#last = event.lastEventId
      this.change((JSON.parse(event.data as string) as { nodes: NodeChange[] }).nodes)
    })
    source.addEventListener('cluster', (event) => {
      this.unreachable = (JSON.parse(event.data as string) as { unreachable: string | null }).unreachable ?? ''
    })
    source.addEventListener('end', (event) => {
      this.close()
      const { reason, error } = JSON.parse(event.data as string) as { reason: string; error?: ErrorBody }
      this.reason = reason
      this.error = error ?? null
      this.state = 'ended'
      if (this.reason === 'unauthorized') session.ended()
      if (this.error) this.#later()
    })
    source.onerror = () => {
      this.state = 'broken'
      if (source.readyState !== EventSource.CLOSED || this.#source !== source) return
      this.close()
      void this.#again()
    }
  }

  /** Ask for all nodes again, after an ever longer while: whoever corrects the pool need not reload the page. */
  #later(): void {
    this.#last = ''
    this.#timer = setTimeout(() => this.#open(), this.#pause)
    this.#pause = Math.min(MOST_RETRY_MS, 2 * this.#pause)
  }

  /** Open the stream again in a while, unless there is no such pool: an event source does not say why it failed. */
  async #again(): Promise<void> {
    this.#timer = setTimeout(() => this.#open(), RETRY_MS)
    const waited = this.#timer
    void session.check()
    try {
      await get(`pools/${segment(this.pool)}`)
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404 || this.#timer !== waited) return
      this.close()
      this.error = null
      this.reason = 'deleted'
      this.state = 'ended'
    }
  }
}
