// The words on the map.
import type { DomainBox } from './layout'
import { named } from './model'

export function headline(box: DomainBox, size: number, _tick: number): { name: string; full: string; numbers: string } {
  const { domain } = box
  if (box.lacks) {
    const gpus = domain.own.reduce((sum, node) => sum + node.gpus, 0)
    const used = domain.own.reduce((sum, node) => sum + node.used, 0)
    const name = `no ${box.lacks}`
    return { name, full: `nodes without a label of level ${box.lacks}`, numbers: `${share(used, gpus)} used` }
  }
  return {
    name: named(domain),
    full: domain.path.join(' / '),
    numbers: `${share(domain.used, domain.gpus)} used · ${number(domain.free)} free · fits ${number(domain.room)}×${size}`,
  }
}

/** The words on a domain that is too small for its headline. */
export function labelOf(box: DomainBox, wide: boolean): { name: string; used: string } {
  return { name: wide ? named(box.domain) : box.domain.short, used: `${share(box.domain.used, box.domain.gpus)} used` }
}

const FORMAT = new Intl.NumberFormat('en')

export function number(of: number): string {
  return FORMAT.format(of)
}

export function share(part: number, whole: number): string {
  return `${number(part)}/${number(whole)}`
}

export function counted(count: number, word: string): string {
  return `${number(count)} ${word}${count === 1 ? '' : 's'}`
}
