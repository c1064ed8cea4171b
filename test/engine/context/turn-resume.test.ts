import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../../src/core/clock.ts';
import { newId } from '../../../src/core/ids.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import { noTelemetry } from '../../../src/core/telemetry/telemetry.ts';
import type { RunPlan } from '../../../src/engine/active-run.ts';
import type { CompiledAgent } from '../../../src/engine/compiled-agent.ts';
import type { ChatMessage } from '../../../src/engine/context/chat-message.ts';
import { noAttachments } from '../../../src/engine/context/run-attachments.ts';
import { openCalls, type TurnResume } from '../../../src/engine/context/turn-resume.ts';
import { createRunEngine } from '../../../src/engine/lifecycle/run-engine.ts';
import { createPriceList } from '../../../src/engine/pricing.ts';
import { decodePack } from '../../../src/engine/record/event-pack.ts';
import { registeredTool } from '../../../src/engine/tools/registry.ts';
import type { ToolDefinition } from '../../../src/engine/tools/tool.ts';
import { runPlan } from '../../../src/features/runs/launch/run-plan.ts';
import { createRunJournal } from '../../../src/features/runs/run-journal.store.ts';
import { turnStore } from '../../../src/features/runs/run-turns.store.ts';
import { runStore } from '../../../src/features/runs/runs.store.ts';
import { createModelProviders } from '../../../src/providers/models/index.ts';
import { noProtection } from '../../../src/providers/models/protection/call-protection.ts';
import { openAccess } from '../../../src/providers/models/provider-access.ts';
import { openTestStore, temporaryFolder } from '../../support/opened-store.ts';

interface Called {
  readonly name: string;
  readonly key: string;
}

const script = `
rules:
  - when: { message: again, call: 2 }
    reply: { toolCalls: [{ name: look, arguments: {} }] }
  - reply: { text: 'Seen: {{last}}' }
`;

/** The engine on a store of its own, with a scripted model and the tools `look` and `pay`, which note their calls. */
const openEngine = async (t: TestContext) => {
  const { storage } = await openTestStore(t);
  const file = join(temporaryFolder(t), 'script.yaml');
  writeFileSync(file, script);
  const provider = createModelProviders({ Scripted: { demo: { File: file } } }, { log: () => undefined }).get('demo');
  assert.ok(provider !== undefined);
  const called: Called[] = [];
  const define = (name: string, effect: NonNullable<ToolDefinition['effect']>) =>
    registeredTool({
      name,
      description: name,
      inputSchema: { type: 'object' },
      effect,
      execute: async (_args, { idempotencyKey }) => {
        called.push({ name, key: idempotencyKey });
        return `${name} done`;
      },
    });
  const tools = [define('look', 'Read'), define('pay', 'Destructive')];
  const agent: CompiledAgent = {
    name: 'helper',
    version: 3,
    origin: 'database',
    savedAt: null,
    model: {
      provider,
      model: 'demo-1',
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
    tools: new Map(tools.map((tool) => [tool.definition.name, { kind: 'tool', tool }])),
    modelTools: [],
    asksForEveryTool: false,
    resources: [],
    withheldTools: null,
    flow: null,
    subAgents: { childDeadlineMs: null, waitTimeoutMs: null },
    compaction: null,
    loop: null,
    maxIterations: null,
    hasMemory: false,
    hasModes: false,
    webSearch: false,
    resolveParameters: () => ({}),
    instructions: () => null,
  };
  const engine = createRunEngine({
    children: {
      plan: async () => {
        throw new Error('No agent here calls another one.');
      },
      planRemote: () => {
        throw new Error('No agent here calls another one.');
      },
    },
    resources: { read: async () => [] },
    approvals: {
      decide: async () => ({ kind: 'run', by: null, ruleId: null }),
      present: async () => null,
    },
    quotas: null,
    listeners: null,
    shared: null,
    failureOf: () => null,
    pauses: { opened: () => [] },
    ends: null,
    stops: { reason: () => null, current: () => null },
    journal: storage.stores(createRunJournal(null, null)),
    prices: createPriceList(null, {}),
    access: openAccess,
    protection: noProtection,
    telemetry: noTelemetry(),
    responses: { find: async () => null, keep: () => undefined },
    attachments: { load: async () => noAttachments },
    tools: {
      authorizer: null,
      defaultTimeoutMs: 10_000,
      defaultMaxOutputBytes: null,
      saveAttachment: async () => {
        throw new Error('No tool here saves attachments.');
      },
      log: silentLogger,
    },
    settings: {
      recording: {
        enabled: true,
        recordMessageDeltas: true,
        recordReasoningDeltas: false,
        recordRunInput: true,
        recordToolPayloads: true,
        maxPayloadLength: 0,
      },
      tree: { maxDepth: 3, maxTotalTokens: 0, maxTotalRuns: 0, maxTotalCostMicros: null, maxDurationMs: null },
      maxIterations: 5,
      maxConsecutiveToolErrors: 3,
      steps: { continuation: false, retries: false },
      childDeadlineMs: null,
      waitTimeoutMs: null,
      structuredResponse: { enabled: false, maxRepairAttempts: 0 },
    },
    unfinished: { requeue: () => null, postpone: () => [], continuation: () => [], packPrincipal: () => null },
    memory: { openTodos: async () => [], mode: async () => 'act', runClosed: () => [] },
    guards: null,
    structuredResponseValidators: new Map(),
    loopCriteria: new Map(),
    log: silentLogger,
    enqueue: (unit) => storage.batch.enqueue(unit),
    closeLater: () => undefined,
    now: systemClock.now,
    after: systemClock.after,
    newId,
  });
  const start = (given: Partial<RunPlan>) => {
    const plan = runPlan({
      id: newId(),
      tenantId: 't',
      requestId: 'r',
      agent,
      parameters: {},
      isStreaming: true,
      principal: {
        kind: 'Host',
        role: 'Admin',
        scopes: null,
        actor: null,
        userId: null,
        apiKey: null,
        permissions: null,
      },
      userId: null,
      ownerId: null,
      labels: null,
      createdAt: Date.now(),
      ...given,
    });
    return engine.start(plan);
  };
  const eventsOf = async (runId: string) => {
    const packs = await storage.stores(runStore).packs('t', runId, 0, 100);
    return packs
      .flatMap((pack) => decodePack(runId, pack.firstSequence, pack.events, 0))
      .map((frame) => JSON.parse(frame.data) as Record<string, unknown>);
  };
  return { storage, called, start, eventsOf };
};

const message = (role: ChatMessage['role'], contents: ChatMessage['contents']): ChatMessage => ({
  messageId: newId(),
  role,
  runId: null,
  createdAt: new Date().toISOString(),
  interrupted: false,
  contents,
});

/** A turn whose model has called `look` and then `pay`; the first answer is known. */
const halfAnswered = (text: string): TurnResume => {
  const calls = openCalls({ id: 'earlier', modelCalls: 1 }, [
    { type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: '{}' },
    { type: 'tool-call', toolCallId: 'c2', toolName: 'pay', input: '{"sum":1}' },
  ]);
  return {
    messages: [
      message('User', [{ type: 'Text', text }]),
      message('Assistant', [
        { type: 'ToolCall', toolCallId: 'c1', toolName: 'look', arguments: {} },
        { type: 'ToolCall', toolCallId: 'c2', toolName: 'pay', arguments: { sum: 1 } },
      ]),
    ],
    calls: calls.map((open) =>
      open.call.toolCallId === 'c1'
        ? {
            ...open,
            answer: { type: 'ToolResult', toolCallId: 'c1', toolName: 'look', result: 'known', errorMessage: null },
          }
        : open,
    ),
    earlier: null,
  };
};

test('RUN-77 a resumed turn executes only the calls that are not answered yet, under their own keys', async (t) => {
  const { start, called, storage, eventsOf } = await openEngine(t);
  const resume = halfAnswered('Pay.');
  const run = start({ resume, continuedFromRunId: 'earlier' });
  const outcome = await run.done;
  assert.deepEqual([outcome.status, outcome.output], ['Completed', 'Seen: pay done']);
  assert.deepEqual(called, [{ name: 'pay', key: resume.calls[1]?.idempotencyKey }]);
  const ledger = await storage.stores(turnStore).ledger(run.id);
  assert.deepEqual(
    ledger.map((row) => [row.tool_name, row.state, row.idempotency_key]),
    [['pay', 'Settled', resume.calls[1]?.idempotencyKey]],
  );
  const events = await eventsOf(run.id);
  assert.deepEqual(
    events.filter((event) => event['type'] !== 'message.delta').map((event) => event['type']),
    ['run.started', 'tool.invoking', 'tool.invoked', 'message.completed', 'usage.updated', 'run.completed'],
  );
  assert.equal(events[0]?.['continuedFromRunId'], 'earlier');
  const row = await storage.stores(runStore).get('t', run.id);
  assert.equal(row?.continued_from_run_id, 'earlier');
});

test('TOOL-21 the results of a resumed turn stand in one message, in the order of its calls', async (t) => {
  const { start } = await openEngine(t);
  const run = start({ resume: halfAnswered('Pay.') });
  await run.done;
  assert.deepEqual(
    run.messages.map((entry) => entry.role),
    ['User', 'Assistant', 'Tool', 'Assistant'],
  );
  const results = run.messages[2]?.contents.map((part) => part.type === 'ToolResult' && [part.toolCallId, part.result]);
  assert.deepEqual(results, [
    ['c1', 'known'],
    ['c2', 'pay done'],
  ]);
});

test("RUN-5 a message of a resumed turn follows the answered calls as the user's next one", async (t) => {
  const { start, storage } = await openEngine(t);
  const run = start({ resume: { ...halfAnswered('Pay.'), messages: [] }, message: 'And now?' });
  const outcome = await run.done;
  assert.equal(outcome.status, 'Completed');
  assert.deepEqual(
    run.messages.map((entry) => entry.role),
    ['Tool', 'User', 'Assistant'],
  );
  const input = await storage.stores(runStore).recordedInput('t', run.id);
  assert.match(JSON.stringify(input), /And now\?/);
});

test('TOOL-27 keys of calls made after a resumed turn differ from the earlier ones', async (t) => {
  const { start, called } = await openEngine(t);
  const resume = halfAnswered('again');
  const open = resume.calls[0];
  assert.ok(open !== undefined);
  // The same run with the same call once more: only the turn of the model differs.
  const run = start({ id: 'earlier', resume: { ...resume, calls: [{ ...open, answer: 'execute' }] } });
  await run.done;
  assert.deepEqual(
    called.map(({ name }) => name),
    ['look', 'look'],
  );
  assert.equal(called[0]?.key, open.idempotencyKey);
  assert.notEqual(called[1]?.key, open.idempotencyKey);
});
