// Colours, hatchings and letters of holders: no two of the first 42 share both colour and hatching, and a letter stands
// beside them, so that nobody depends on colour.

// Okabe and Ito's colours, which people with any kind of colour vision can tell apart.
const COLOURS = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#f0e442']
const DARK = new Set(['#0072b2', '#009e73', '#d55e00'])
export const HATCHES = [
  '',
  'M-2,2l4,-4M0,8l8,-8M6,10l4,-4',
  'M0,2h8M0,6h8',
  'M-2,6l4,4M0,0l8,8M6,-2l4,4',
  'M1,1h2M5,5h2M1,2h2M5,6h2',
  'M2,0v8M6,0v8',
]

export interface Paint {
  index: number
  colour: string
  hatch: string
  letter: string
  /** The colour of letters and lines upon it. */
  ink: string
}

/** The paints of holders; one that stays keeps its paint while others come and go. */
export class Palette {
  #paints = new Map<string, Paint>()

  update(holders: ReadonlyMap<string, number>): void {
    for (const owner of this.#paints.keys()) if (!holders.has(owner)) this.#paints.delete(owner)
    const taken = new Set([...this.#paints.values()].map((paint) => paint.index))
    const fresh = [...holders].filter(([owner]) => !this.#paints.has(owner))
    fresh.sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
    let next = 0
    for (const [owner] of fresh) {
      while (taken.has(next)) next += 1
      taken.add(next)
      this.#paints.set(owner, paint(next))
    }
  }

  of(owner: string): Paint {
    return this.#paints.get(owner) ?? paint(0)
  }

  get all(): Paint[] {
    return [...this.#paints.values()]
  }
}

function paint(index: number): Paint {
  const colour = COLOURS[index % COLOURS.length]!
  const round = Math.floor(index / 26)
  const letter = String.fromCharCode(65 + (index % 26)) + (round ? String(round + 1) : '')
  return { index, colour, hatch: HATCHES[index % HATCHES.length]!, letter, ink: DARK.has(colour) ? '#fff' : '#111' }
}
