import assert from 'node:assert/strict';
import type { ToolDefinition } from '../../../src/engine/tools/tool.ts';
import { type AppSetup, forEachService, type OpenApp } from '../../support/app.ts';
import { followToEnd, listRuns, refusal, runJson, tool } from '../runs/run-calls.ts';
import { calls, decide, messagesOf, openApprovals, queueWaiting, toolTexts } from './approval-world.ts';

const sessionId = 's-1';
const model = { provider: 'local', model: 'any', allowConcurrentToolCalls: true };

/** Tools that tell when they begin and end; those named `meet…` end when all of these have begun. */
const openSideBySide = async (open: OpenApp, setup: AppSetup = {}) => {
  const told: string[] = [];
  const met = Promise.withResolvers<void>();
  let meeting = 0;
  const telling = (name: string, more: Partial<ToolDefinition>): ToolDefinition => ({
    ...tool(name, async () => {
      told.push(`${name} begins`);
      if (name.startsWith('meet')) {
        meeting += 1;
        if (meeting === 2) met.resolve();
        await met.promise;
      } else for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      told.push(`${name} ends`);
      return `${name} done`;
    }),
    ...more,
  });
  const marked = { requiresApproval: true, effect: 'Destructive' } as const;
  const app = await openApprovals(open, {
    ...setup,
    agent: { model },
    tools: [telling('pay', marked), telling('wipe', marked), telling('meet-1', {}), telling('meet-2', {})],
  });
  return Object.assign(app, { told });
};

const whole = (...names: string[]): string[] => names.flatMap((name) => [`${name} begins`, `${name} ends`]);

forEachService('AGENT-27 approved calls run one after another, also where calls may run in parallel', async (open) => {
  const app = await openSideBySide(open);
  const asked = await runJson(app.client, 'helper', { message: calls(['wipe'], ['pay'], ['wipe']), sessionId });
  const approvals = asked.approvals.map(({ requestId }) => ({ requestId, approved: true }));
  const end = await runJson(app.client, 'helper', { sessionId, approvals });
  assert.equal(end.status, 'Completed');
  assert.deepEqual(app.told, whole('wipe', 'pay', 'wipe'));
  assert.deepEqual(toolTexts(app.simulator.lastRequest()), ['wipe done', 'pay done', 'wipe done']);
});

forEachService('AGENT-27 what the mailbox has approved runs one after another', async (open) => {
  const app = await openSideBySide(open);
  const { rows } = await queueWaiting(app, sessionId, ['wipe'], ['pay']);
  const [, last] = [
    await decide(app.client, rows[0]?.id ?? '', true),
    await decide(app.client, rows[1]?.id ?? '', true),
  ];
  const events = await followToEnd(app.client, last.continuationRunId ?? '');
  assert.equal(events.at(-1)?.type, 'run.completed');
  assert.deepEqual(app.told, whole('wipe', 'pay'));
});

forEachService(
  'AGENT-27 what a standing rule approves runs by itself, after the calls that need no approval have run in parallel',
  async (open) => {
    const app = await openSideBySide(open);
    for (const toolName of ['pay', 'wipe']) await app.client.approvalRules.create({ body: { toolName } });
    const message = calls(['wipe'], ['meet-1'], ['pay'], ['meet-2'], ['wipe']);
    const end = await runJson(app.client, 'helper', { message, sessionId });
    assert.equal(end.status, 'Completed');
    assert.deepEqual(app.told.slice(0, 2).sort(), ['meet-1 begins', 'meet-2 begins'], 'these two did run in parallel');
    assert.deepEqual(app.told.slice(4), whole('wipe', 'pay', 'wipe'));
    assert.deepEqual(toolTexts(app.simulator.lastRequest()), [
      'wipe done',
      'meet-1 done',
      'pay done',
      'meet-2 done',
      'wipe done',
    ]);
  },
);

forEachService('AGENT-27 a call that waits for its decision keeps no other from running', async (open) => {
  const app = await openSideBySide(open);
  await app.client.approvalRules.create({ body: { toolName: 'pay' } });
  const message = calls(['wipe'], ['pay'], ['meet-1'], ['meet-2']);
  const asked = await runJson(app.client, 'helper', { message, sessionId });
  assert.deepEqual(
    asked.approvals.map(({ toolName }) => toolName),
    ['wipe'],
  );
  assert.deepEqual(app.told.slice(4), whole('pay'));
});

forEachService(
  'AGENT-27 a call that the policy of the host lets go needs no approval and runs in parallel',
  async (open) => {
    const answers = { decide: async () => 'NotRequired' as const };
    const together = Promise.withResolvers<void>();
    let running = 0;
    const app = await openApprovals(open, {
      agent: { model },
      module: { approvalPolicy: answers },
      tools: [
        {
          ...tool('pay', async () => {
            running += 1;
            if (running === 2) together.resolve();
            await together.promise;
            return 'paid';
          }),
          requiresApproval: true,
        },
      ],
    });
    const end = await runJson(app.client, 'helper', { message: calls(['pay'], ['pay']), sessionId });
    assert.equal(end.status, 'Completed');
  },
);

forEachService('AGENT-27 TOOL-16 when the turn has failed meanwhile, what had to wait is not called', async (open) => {
  const app = await openApprovals(open, {
    agent: { model },
    service: { Tools: { MaxConsecutiveErrors: 0 } },
    more: [
      tool('fail', async () => {
        throw new Error('no');
      }),
    ],
  });
  await app.client.approvalRules.create({ body: { toolName: 'pay' } });
  const failure = await refusal(runJson(app.client, 'helper', { message: calls(['pay'], ['fail']), sessionId }));
  assert.equal(failure.code, 'tool-failed');
  assert.deepEqual(app.done, []);
  const [run] = await listRuns(app.client, {});
  const { body: records } = await app.client.runs.tools({ params: { runId: run?.id ?? '' } });
  assert.deepEqual(
    records.map(({ toolName, error }) => [toolName, error]),
    [
      ['fail', 'Tool failed with Error.'],
      ['pay', 'The call was canceled with its run.'],
    ],
  );
  assert.equal(messagesOf(app.simulator.lastRequest()).length, 1, 'the model was not asked again');
});
