import { type FlowSettings, flowSettings } from '../../contract/flow-settings.ts';
import type { Json } from '../../contract/schema.ts';
import { AgentDefinitionRequest } from './agents.schema.ts';

/** With nothing left out, at any depth; JSON and maps stay as they are. */
type Whole<T> = Json extends T
  ? T
  : T extends readonly (infer E)[]
    ? Whole<E>[]
    : T extends object
      ? string extends keyof T
        ? T
        : { readonly [K in keyof T]-?: Whole<T[K]> }
      : T;

/** What a version holds: every field of a definition with its defaults filled in, nothing about who saved it. */
export type AgentContent = Omit<Whole<AgentDefinitionRequest>, 'expectedVersion'>;
export type BindingContent = AgentContent['model'];
export type ModelReferenceContent = BindingContent['fallbacks'][number];
export type ResponseFormatContent = NonNullable<BindingContent['responseFormat']>;
export type HarnessContent = NonNullable<AgentContent['harness']>;
export type RemoteAgentContent = AgentContent['remoteAgents'][number];
export type LoopContent = NonNullable<HarnessContent['loop']>;

/** What the schema of a body says of its members. */
export interface SchemaShape {
  readonly type?: string | readonly string[];
  readonly default?: unknown;
  /** Words that are taken in any case; one that is not among them stays as it is, for the rules to report. */
  readonly examples?: readonly string[];
  readonly properties?: Readonly<Record<string, SchemaShape>>;
  readonly items?: SchemaShape;
}

/** What an omitted member stands for: the schema's default, an empty list or map, false, or null. */
const omitted = ({ type, default: named }: SchemaShape): unknown => {
  if (named !== undefined) return named;
  if (type === 'array') return [];
  if (type === 'object') return {};
  return type === 'boolean' ? false : null;
};

const filled = (shape: SchemaShape, value: unknown): unknown => {
  const { examples, items, properties } = shape;
  if (value === undefined) return omitted(shape);
  if (typeof value === 'string') return examples?.find((word) => word.toLowerCase() === value.toLowerCase()) ?? value;
  if (Array.isArray(value)) return items === undefined ? value : value.map((item) => filled(items, item));
  if (properties === undefined || value === null) return value;
  const members = value as Readonly<Record<string, unknown>>;
  return Object.fromEntries(Object.entries(properties).map(([name, member]) => [name, filled(member, members[name])]));
};

const flowShape = flowSettings('') as SchemaShape;
const defaultSchemaName = 'response';

/** A format with a schema has a name, which providers ask for. */
const withSchemaName = (binding: BindingContent): BindingContent => {
  const { responseFormat } = binding;
  if (responseFormat?.kind !== 'JsonSchema' || responseFormat.schemaName !== null) return binding;
  return { ...binding, responseFormat: { ...responseFormat, schemaName: defaultSchemaName } };
};

/** Settings of a flow with nothing left out. */
export const wholeFlow = (flow: FlowSettings): NonNullable<AgentContent['flow']> =>
  filled(flowShape, flow) as NonNullable<AgentContent['flow']>;

/**
 * The content that a body stands for: omitted fields take their defaults, members that are no content fall away.
 * Two bodies with equal contents are the same definition, and so are a body and a stored definition.
 */
export const agentContent = (body: AgentDefinitionRequest): AgentContent => {
  const whole = filled(AgentDefinitionRequest as SchemaShape, body) as Whole<AgentDefinitionRequest>;
  const { expectedVersion: _expectedVersion, ...content } = whole;
  const { compaction } = content;
  const summarizer = compaction?.summarizationModel ?? null;
  return {
    ...content,
    model: withSchemaName(content.model),
    compaction:
      compaction === null || summarizer === null
        ? compaction
        : { ...compaction, summarizationModel: withSchemaName(summarizer) },
  };
};

type Later = 'flow' | 'toolDiscovery' | 'remoteAgents';

/** Content as this version of the service or an earlier one has stored it. */
export type EarlierContent = Omit<AgentContent, Later> & Partial<Pick<AgentContent, Later>>;

const noGates: NonNullable<AgentContent['flow']> = {
  rateLimit: null,
  throttle: null,
  debounce: null,
  singleton: null,
  concurrency: null,
  priority: null,
};

/** Earlier versions of the service stored no flow, or one with fewer gates, gave models all tools, and knew no remote agents. */
export const currentContent = (content: EarlierContent): AgentContent => {
  const { toolDiscovery = 'all', remoteAgents = [] } = content;
  const flow = content.flow ?? null;
  return { ...content, toolDiscovery, remoteAgents, flow: flow && { ...noGates, ...flow } };
};
