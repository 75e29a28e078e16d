// Plain values as YAML.

const PLAIN = /^[A-Za-z_/][\w ./-]*$/
const WORDS = new Set(['true', 'false', 'null', 'yes', 'no', 'on', 'off', 'y', 'n'])

export function yaml(value: unknown, indent = ''): string {
  if (Array.isArray(value)) {
    if (!value.length) return '[]'
    return value.map((each) => `\n${indent}- ${yaml(each, `${indent}  `).replace(/^\n\s*/, '')}`).join('')
  }
  if (value !== null && typeof value === 'object') {
    const pairs = Object.entries(value).filter(([, each]) => each !== undefined)
    if (!pairs.length) return '{}'
    return pairs.map(([key, each]) => `\n${indent}${scalar(key)}:${after(each, `${indent}  `)}`).join('')
  }
  return scalar(value)
}

/** The whole document of a value. */
export function yamlText(value: unknown): string {
  return `${yaml(value).replace(/^\n/, '')}\n`
}

function after(value: unknown, indent: string): string {
  const text = yaml(value, indent)
  return text.startsWith('\n') ? text : ` ${text}`
}

function scalar(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value)
  const plain = PLAIN.test(value) && !value.endsWith(' ') && !WORDS.has(value.toLowerCase())
  return plain ? value : JSON.stringify(value)
}
