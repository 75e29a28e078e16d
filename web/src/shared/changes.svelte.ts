// What happens on the service: one stream of events, which tells a page when to ask again.
import { address } from '../api/client'
import type { Event } from '../api/types'
import { session } from '../session.svelte'

const RETRY_MS = 2000
const GATHER_MS = 250
/** How often a stream that has ended is opened again while a restart is expected, and how many times. */
const RESTART_MS = 500
const RESTARTS = 60

export class Changes {
  live = $state(false)
  /** The reason of the end: finished or deleted; empty while more may come. */
  ended = $state('')
  #source: EventSource | null = null
  #timer: ReturnType<typeof setTimeout> | undefined
  #gathered: ReturnType<typeof setTimeout> | undefined
  #last = ''
  #restarts = 0

  /** `told` gets each event; `changed` is called once for several in quick succession, and after each new connection. */
  constructor(
    readonly path: string,
    after: number,
    readonly changed: () => void,
    readonly told: (event: Event) => void = () => {},
  ) {
    this.#last = String(after)
    this.#open()
  }

  /** Follow what has ended once more: it was told to run again, and will in a moment. */
  restart(): void {
    this.close()
    this.#restarts = RESTARTS
    this.#open()
  }

  close(): void {
    clearTimeout(this.#timer)
    clearTimeout(this.#gathered)
    this.#source?.close()
    this.#source = null
  }

  #open(): void {
    const source = new EventSource(address(this.path, { follow: true, after: this.#last }))
    this.#source = source
    source.onopen = () => {
      if (!this.live) this.#tell()
      this.live = true
    }
    source.onmessage = (event) => {
      this.#restarts = 0
      this.ended = ''
      this.#last = event.lastEventId
      this.told(JSON.parse(event.data as string) as Event)
      this.#tell()
    }
    source.addEventListener('end', (event) => {
      this.close()
      if (this.#restarts-- > 0) {
        this.#timer = setTimeout(() => this.#open(), RESTART_MS)
        return
      }
      this.ended = (JSON.parse(event.data as string) as { reason: string }).reason
      if (this.ended === 'unauthorized') session.ended()
      this.changed()
    })
    source.onerror = () => {
      this.live = false
      if (source.readyState !== EventSource.CLOSED || this.#source !== source) return
      this.close()
      void session.check()
      this.#timer = setTimeout(() => this.#open(), RETRY_MS)
    }
  }

  #tell(): void {
    clearTimeout(this.#gathered)
    this.#gathered = setTimeout(this.changed, GATHER_MS)
  }
}
