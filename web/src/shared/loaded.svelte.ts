// An answer of the service that is shown, and asked for again when something happened.
import { ApiError, get, type Query } from '../api/client'
import { session } from '../session.svelte'

export class Loaded<T> {
  value = $state.raw<T | null>(null)
  error = $state.raw<ApiError | null>(null)
  #round = 0

  async load(path: string, query: Query = {}): Promise<void> {
    const round = ++this.#round
    try {
      const found = await get<T>(path, query)
      if (round !== this.#round) return
      this.value = found
      this.error = null
    } catch (error) {
      if (round !== this.#round) return
      if (!(error instanceof ApiError)) throw error
      if (error.status === 401) session.ended()
      this.error = error
    }
  }
}
