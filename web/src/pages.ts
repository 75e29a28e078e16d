// The pages by their addresses. The map comes first; `link` puts a page into the navigation.
import type { Component } from 'svelte'
import MapPage from './map/MapPage.svelte'
import PlanPage from './plan/PlanPage.svelte'
import PoolsPage from './pools/PoolsPage.svelte'
import ListPage from './workflows/ListPage.svelte'
import WorkflowPage from './workflows/WorkflowPage.svelte'

export interface Page {
  title: string
  link: string
  matches: (path: string) => boolean
  name: (path: string) => string
  component: Component
}

export const pages: Page[] = [
  page('Map', '/map', MapPage, (path) => path === '/' || path === '/map'),
  page('Workflows', '/workflows', ListPage),
  page('Plan', '/plan', PlanPage),
  page('Pools', '/pools', PoolsPage, (path) => /^\/pools(\/[^/]+)?$/.test(path)),
  {
    title: 'Workflow',
    link: '',
    matches: (path) => /^\/workflows\/[^/]+$/.test(path),
    name: (path) => decodeURIComponent(path.split('/')[2] ?? ''),
    component: WorkflowPage,
  },
]

function page(
  title: string,
  link: string,
  component: Component,
  matches = (path: string) => path === link,
): Page {
  return { title, link, matches, name: () => title.toLowerCase(), component }
}
