// Names for the shapes of the API's answers, which are generated from its schema.
import type { components, operations } from './schema'

type Schemas = components['schemas']
type Answer<Name extends keyof operations> = operations[Name] extends {
  responses: { 200: { content: { 'application/json': infer Body } } }
}
  ? Body
  : never

export type NodeMap = Schemas['NodeMap']
export type ListedNode = Schemas['ListedNode']
export type NodeNow = Pick<ListedNode, 'gpus' | 'status' | 'channel' | 'held'>
export type NodeHolder = Schemas['NodeHolder']
export type Identity = Schemas['Identity']
export type Pools = Answer<'pools'>
export type Pool = Pools['items'][number]
export type Placement = Schemas['Placement']
export type Audited = Schemas['Audited']
export type ErrorBody = Schemas['ErrorBody']

export type NodeChange = NodeNow & { index: number }

export type Rows = Answer<'workflows'>
export type Row = Rows['items'][number]
export type Workflow = Answer<'workflows_workflow'>
export type Group = Workflow['groups'][number]
export type Task = Group['tasks'][number]
export type Event = Schemas['Event']
export type Events = Schemas['Events']
export type Source = Schemas['Source']
export type Why = Schemas['WhyInDetail']
export type WhyGroup = Why['groups'][number]
export type Refusal = Schemas['Refusal']
export type WayOut = Schemas['WayOut']
export type Plan = Schemas['Plan']
export type Assignment = Schemas['Assignment']
export type Topologies = Schemas['Topologies']
export type Applied = Schemas['Applied']
export type Topology = Schemas['Topology']
export type TopologyUsers = Schemas['TopologyUsers']
export type PoolHistory = Schemas['PoolHistory']
export type HistoryPoint = Schemas['HistoryPoint']
