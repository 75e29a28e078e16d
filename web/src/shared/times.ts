// Times and durations as people read them.

export function moment(text: string | null): string {
  return text ? new Date(text).toLocaleString() : '–'
}

export function duration(from: string | null, to: string | null, now = Date.now()): string {
  return from ? length(((to ? Date.parse(to) : now) - Date.parse(from)) / 1000) : '–'
}

/** A number of seconds in two units. */
export function length(time: number): string {
  const seconds = Math.max(0, Math.round(time))
  if (seconds < 60) return `${seconds}s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes}m${String(seconds % 60).padStart(2, '0')}s`
  return `${Math.floor(minutes / 60)}h${String(minutes % 60).padStart(2, '0')}m`
}
