import assert from 'node:assert/strict';
import { isSameDefinition } from '../../../src/client/definition-content.ts';
import { forEachService } from '../../support/app.ts';

const model = { provider: 'demo', model: 'demo-1' };
const marker = { kind: 'completionMarker', marker: 'DONE' };
const loop = (members: Record<string, unknown>) => ({ harness: { loop: { criteria: [marker], ...members } } });

/** Settings and the code and path of each finding. */
const cases: readonly (readonly [Record<string, unknown>, ...(readonly [string, string])[]])[] = [
  [{ compaction: { strategy: 'None' }, memory: {}, harness: {} }],
  [{ compaction: { strategy: 'slidingwindow', triggerTurns: 1 } }],
  [{ compaction: { strategy: 'Newest' } }, ['invalid-compaction', 'compaction.strategy']],
  [{ compaction: { strategy: 'Truncation' } }, ['invalid-compaction', 'compaction']],
  [{ compaction: { strategy: 'ContextWindow' } }, ['invalid-compaction', 'compaction.maxContextWindowTokens']],
  [
    { compaction: { strategy: 'ContextWindow', maxContextWindowTokens: 4096 } },
    ['invalid-compaction', 'compaction.maxContextWindowTokens'],
  ],
  [{ compaction: { strategy: 'ToolResult', triggerTokens: 0 } }, ['value-out-of-range', 'compaction.triggerTokens']],
  [
    {
      compaction: { strategy: 'Summarization', triggerTurns: 2, summarizationModel: { provider: 'none', model: 'x' } },
    },
    ['provider-not-registered', 'compaction.summarizationModel.provider'],
  ],
  [{ memory: { vectorCollection: 'a b' } }, ['invalid-memory', 'memory.vectorCollection']],
  [{ memory: { enableVectorSearch: true } }, ['vector-search-unavailable', 'memory.enableVectorSearch']],
  [{ memory: { enableTextSearch: true } }, ['feature-conflict', 'memory.enableTextSearch']],
  [{ harness: {}, memory: { enableTextSearch: true } }],
  [
    { harness: {}, memory: { enableTodo: true, enableFileMemory: true } },
    ['feature-conflict', 'memory.enableTodo'],
    ['feature-conflict', 'memory.enableFileMemory'],
  ],
  [{ harness: {}, compaction: { strategy: 'ToolResult', triggerTurns: 2 } }, ['feature-conflict', 'compaction']],
  [{ harness: { disableCompaction: true }, compaction: { strategy: 'ToolResult', triggerTurns: 2 } }],
  [{ harness: { maximumIterationsPerRequest: 1001 } }, ['value-out-of-range', 'harness.maximumIterationsPerRequest']],
  [{ harness: { harnessInstructions: 'For {{who}}.' } }, ['undeclared-placeholder', 'harness.harnessInstructions']],
  [{ harness: { disableTool: true } }, ['unknown-field', 'harness.disableTool']],
  [loop({ criteria: [] }), ['invalid-harness', 'harness.loop.criteria']],
  [loop({ maxIterations: 101 }), ['value-out-of-range', 'harness.loop.maxIterations']],
  [loop({ criteria: [{ kind: 'polite' }] }), ['loop-criterion-not-found', 'harness.loop.criteria[0].kind']],
  [loop({ criteria: [{ kind: 'completionMarker' }] }), ['invalid-harness', 'harness.loop.criteria[0].marker']],
  [loop({ criteria: [{ kind: 'aiJudge' }] }), ['invalid-harness', 'harness.loop.criteria[0].judgeCriteria']],
  [
    loop({ criteria: [{ kind: 'todoCompletion', modes: ['act', 'fly'] }] }),
    ['invalid-harness', 'harness.loop.criteria[0].modes[1]'],
  ],
];

forEachService('AGENT-20 AGENT-38 AGENT-42 findings of compaction, memory, harness and loop', async (open) => {
  const app = await open();
  for (const [settings, ...expected] of cases) {
    const { body } = await app.client.agents.validate({ body: { name: 'a', model, ...settings } });
    assert.deepEqual(
      body.messages.map(({ code, path }) => [code, path]),
      expected,
      JSON.stringify(settings),
    );
  }
});

forEachService('AGENT-9 a stored definition with every setting says what its document says', async (open) => {
  const app = await open();
  const documents: readonly Record<string, unknown>[] = [
    { compaction: { strategy: 'pipeline', triggerTurns: 3, summarizationModel: { ...model, temperature: 0.1 } } },
    { memory: { enableTodo: true }, harness: null },
    { memory: {} },
    loop({ freshContextPerIteration: true }),
    { harness: { disableModes: true } },
  ];
  for (const [index, settings] of documents.entries()) {
    const body = { name: `a${index}`, model, ...settings };
    const { body: stored } = await app.client.agents.create({ body });
    assert.ok(isSameDefinition(body, stored), JSON.stringify(settings));
    assert.ok(!isSameDefinition({ ...body, memory: { enableTextSearch: true } }, stored));
  }
});

forEachService(
  'AGENT-20 a strategy of more than 256 characters is refused by the schema, a shorter one by the rules',
  async (open) => {
    const app = await open();
    const save = (strategy: string) =>
      app.client.agents.create({ body: { name: 'a', model, compaction: { strategy } } as never }).then(
        () => null,
        (error: { status?: number; code?: string; details?: { errors?: { path: string }[] } }) => [
          error.code,
          error.details?.errors?.map(({ path }) => path),
        ],
      );
    assert.deepEqual(await save('x'.repeat(256)), ['definition-invalid', ['compaction.strategy']]);
    assert.deepEqual(await save('x'.repeat(257)), ['validation-failed', ['compaction.strategy']]);
  },
);
