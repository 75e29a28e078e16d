// The words on the map.
import type { DomainBox } from './layout'
import { named } from './model'

export function headline(box: DomainBox, size: number, _tick: number): { name: string; full: string; numbers: string } {
  const { domain } = box
  if (box.lacks) {
    const gpus = domain.own.reduce((sum, node) => sum + node.gpus, 0)
    const used = domain.own.reduce((sum, node) => sum + node.used, 0)
    const name = `no ${box.lacks}`
    return { name, full: `nodes without a label of level ${box.lacks}`, numbers: `${used}/${gpus} used` }
  }
  return {
    name: named(domain),
    full: domain.path.join(' / '),
    numbers: `${domain.used}/${domain.gpus} used · ${domain.free} free · fits ${domain.room}×${size}`,
  }
}

/** The words on a domain that is too small for its headline. */
export function signOf(box: DomainBox, wide: boolean): { name: string; used: string } {
  return { name: wide ? named(box.domain) : box.domain.short, used: `${box.domain.used}/${box.domain.gpus} used` }
}

export function counted(number: number, word: string): string {
  return `${number.toLocaleString('en')} ${word}${number === 1 ? '' : 's'}`
}
