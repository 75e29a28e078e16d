// The user of the page. A token is sent once; from then on a cookie stands for it that no script can read.
import { ApiError, call, get } from './api/client'
import type { Identity } from './api/types'

class Session {
  user = $state<Identity | null>(null)
  /** Whether the service asks for a token. */
  asked = $state(false)
  error = $state<ApiError | null>(null)

  async check(): Promise<void> {
    try {
      this.user = await get<Identity>('whoami')
      this.asked = false
      this.error = null
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      if (error.status === 401) this.ended()
      else this.error = error
    }
  }

  async signIn(token: string): Promise<void> {
    this.user = await call<Identity>('POST', 'session', { token })
    this.asked = false
    this.error = null
  }

  async signOut(): Promise<void> {
    await call('DELETE', 'session')
    this.user = null
    await this.check()
  }

  /** Ask for a token: the one in the cookie is missing, has expired, or was deleted. */
  ended(): void {
    this.user = null
    this.asked = true
  }

  may(role: 'user' | 'admin'): boolean {
    const roles = ['viewer', 'user', 'admin']
    return this.user !== null && roles.indexOf(this.user.role) >= roles.indexOf(role)
  }
}

export const session = new Session()
