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
