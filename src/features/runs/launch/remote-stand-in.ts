import type { CompiledAgent } from '../../../engine/compiled-agent.ts';
import type { RemoteAgent } from '../../../engine/tools/index.ts';
import type { ModelProvider } from '../../../providers/models/model-provider.ts';

const notCalled = (): never => {
  throw new Error('A remote agent has no model here that could be called.');
};

/** How rows and metrics name what answers in place of a model. */
const provider: ModelProvider = {
  name: 'a2a',
  kind: 'compatible',
  displayName: null,
  defaultModel: null,
  catalog: [],
  stream: notCalled,
  generate: notCalled,
};

/** What stands for the compiled agent of a run that another system executes: a name, without tools and instructions. */
export const standInFor = ({ name }: Pick<RemoteAgent, 'name'>): CompiledAgent => ({
  name,
  version: 1,
  origin: 'code',
  savedAt: null,
  model: {
    provider,
    model: name,
    catalog: null,
    settings: {},
    fallbacks: [],
    temperature: null,
    topP: null,
    maxOutputTokens: null,
    reasoningEffort: null,
    responseFormat: null,
    allowConcurrentToolCalls: false,
    responseCacheMs: null,
  },
  tools: new Map(),
  modelTools: [],
  withheldTools: null,
  asksForEveryTool: false,
  subAgents: { childDeadlineMs: null, waitTimeoutMs: null },
  flow: null,
  resolveParameters: () => ({}),
  webSearch: false,
  compaction: null,
  loop: null,
  resources: [],
  maxIterations: null,
  hasMemory: false,
  hasModes: false,
  instructions: () => null,
});
