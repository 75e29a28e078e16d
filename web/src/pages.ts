// The pages by their addresses. The map comes first; `link` puts a page into the navigation.
import type { Component } from 'svelte'
import MapPage from './map/MapPage.svelte'

export interface Page {
  title: string
  link: string
  matches: (path: string) => boolean
  name: (path: string) => string
  component: Component
}

export const pages: Page[] = [
  {
    title: 'Map',
    link: '/map',
    matches: (path) => path === '/' || path === '/map',
    name: () => 'map',
    component: MapPage,
  },
]
