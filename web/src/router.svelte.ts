// The address of the page: every selection and filter is part of it, so that a link shows what its sender saw.

class Router {
  path = $state(location.pathname)
  query = $state(new URLSearchParams(location.search))

  constructor() {
    addEventListener('popstate', () => this.#read())
  }

  go(path: string, query: Record<string, string | string[] | null> = {}): void {
    history.pushState(null, '', href(path, query))
    this.#read()
    scrollTo(0, 0)
  }

  /** Change parameters of the query; null removes one. */
  set(changes: Record<string, string | string[] | null>, { replace = false } = {}): void {
    const next = new URLSearchParams(this.query)
    for (const [key, value] of Object.entries(changes)) {
      next.delete(key)
      for (const each of value === null ? [] : [value].flat()) if (each) next.append(key, each)
    }
    if (next.toString() === this.query.toString()) return
    const text = next.toString()
    const target = `${this.path}${text ? `?${text}` : ''}`
    if (replace) history.replaceState(null, '', target)
    else history.pushState(null, '', target)
    this.#read()
  }

  #read(): void {
    this.path = location.pathname
    this.query = new URLSearchParams(location.search)
  }
}

export const router = new Router()

export function href(path: string, query: Record<string, string | string[] | null> = {}): string {
  const words = new URLSearchParams()
  for (const [key, value] of Object.entries(query)) {
    for (const each of value === null ? [] : [value].flat()) if (each) words.append(key, each)
  }
  const text = words.toString()
  return text ? `${path}?${text}` : path
}

/** Follow links inside the page without loading it again; other clicks are left to the browser. */
export function followed(event: MouseEvent): void {
  const link = (event.target as Element | null)?.closest('a')
  if (!link || link.origin !== location.origin || link.target || link.hasAttribute('download')) return
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
  event.preventDefault()
  router.go(link.pathname, Object.fromEntries(pairs(link.search)))
}

function pairs(search: string): Map<string, string[]> {
  const query = new URLSearchParams(search)
  return new Map([...query.keys()].map((key) => [key, query.getAll(key)]))
}
