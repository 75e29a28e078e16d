// The address of the page: every selection and filter is part of it, so that a link shows what its sender saw. A page
// without a service keeps them in the fragment, since its path is that of a file.
import { snapshot } from './snapshot'

export type Changes = Record<string, string | string[] | null>

class Router {
  path = $state('')
  query = $state(new URLSearchParams())

  constructor() {
    if (snapshot?.query && location.hash.length < 2) history.replaceState(null, '', `#${snapshot.query}`)
    addEventListener('popstate', () => this.#read())
    this.#read()
  }

  go(path: string, query: Changes = {}): void {
    history.pushState(null, '', href(path, query))
    this.#read()
    scrollTo(0, 0)
  }

  /** Change parameters of the query; null removes one. */
  set(changes: Changes, { replace = false } = {}): void {
    const target = this.with(changes)
    if (target === this.with({})) return
    if (replace) history.replaceState(null, '', target)
    else history.pushState(null, '', target)
    this.#read()
  }

  /** The address of this page with other parameters; null removes one. */
  with(changes: Changes): string {
    const kept = [...this.query.keys()].map((key) => [key, this.query.getAll(key)] as const)
    return href(this.path, { ...Object.fromEntries(kept), ...changes })
  }

  #read(): void {
    this.path = snapshot ? '/map' : location.pathname
    this.query = new URLSearchParams(snapshot ? location.hash.slice(1) : location.search)
  }
}

export function href(path: string, query: Changes = {}): string {
  const words = new URLSearchParams()
  for (const [key, value] of Object.entries(query)) {
    for (const each of value === null ? [] : [value].flat()) if (each) words.append(key, each)
  }
  const text = words.toString()
  if (snapshot) return `#${text}`
  return text ? `${path}?${text}` : path
}

export const router = new Router()

/** Follow links inside the page without loading it again; other clicks are left to the browser. */
export function followed(event: MouseEvent): void {
  const link = (event.target as Element | null)?.closest('a')
  if (!link || snapshot || link.origin !== location.origin || link.target || link.hasAttribute('download')) return
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
  event.preventDefault()
  router.go(link.pathname, Object.fromEntries(pairs(link.search)))
}

function pairs(search: string): Map<string, string[]> {
  const query = new URLSearchParams(search)
  return new Map([...query.keys()].map((key) => [key, query.getAll(key)]))
}
