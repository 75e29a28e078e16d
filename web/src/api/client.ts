// Requests to the service; all go to the origin of the page, with the cookie of its session.
import type { ErrorBody } from './types'

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly body: Pick<ErrorBody, 'code' | 'message' | 'hint'> & Partial<ErrorBody>,
  ) {
    super(body.message)
  }
}

/** The reason why a cluster is not known before the first try to reach it has ended. */
export const CONNECTING = 'connecting'

export type Query = Record<string, string | number | boolean | string[] | null | undefined>

export interface Call {
  query?: Query
  body?: unknown
  yaml?: string
  token?: string
  signal?: AbortSignal
}

export function address(path: string, query: Query = {}): string {
  const words = new URLSearchParams()
  for (const [key, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === '') continue
    for (const each of Array.isArray(value) ? value : [String(value)]) words.append(key, each)
  }
  const text = words.toString()
  return `/api/v1/${path}${text ? `?${text}` : ''}`
}

export async function call<T>(method: string, path: string, options: Call = {}): Promise<T> {
  const headers: Record<string, string> = {}
  let body: string | undefined
  if (options.yaml !== undefined) {
    headers['content-type'] = 'application/yaml'
    body = options.yaml
  } else if (options.body !== undefined) {
    headers['content-type'] = 'application/json'
    body = JSON.stringify(options.body)
  }
  if (options.token) headers['authorization'] = `Bearer ${options.token}`
  let answer: Response
  try {
    answer = await fetch(address(path, options.query), { method, headers, body, signal: options.signal })
  } catch (error) {
    if (options.signal?.aborted) throw error
    throw new ApiError(0, {
      code: 'Unreachable',
      message: 'the service does not answer',
      hint: 'It may be restarting; the page keeps trying.',
    })
  }
  if (!answer.ok) throw await refusal(answer)
  return (answer.status === 204 ? undefined : await answer.json()) as T
}

export const get = <T>(path: string, query?: Query, signal?: AbortSignal) => call<T>('GET', path, { query, signal })

async function refusal(answer: Response): Promise<ApiError> {
  try {
    const { error } = (await answer.json()) as { error: ErrorBody }
    return new ApiError(answer.status, error)
  } catch {
    const body = { code: 'Unexpected', message: `the service answered ${answer.status}`, hint: 'Try again.' }
    return new ApiError(answer.status, body)
  }
}

export const segment = encodeURIComponent
