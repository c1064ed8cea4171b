import assert from 'node:assert/strict';
import { operations } from '../../../src/operations.ts';
import { overHttp } from '../../support/app.ts';
import { saveQuota } from '../quotas/quota-calls.ts';
import { openMcp, resultOf, stateless } from './mcp-world.ts';

const call = { name: 'helper', arguments: { message: 'Hi' } };

overHttp(
  'MCP-52 what breaks down in the service is told by HTTP, and a refusal of the run is its result',
  async (open) => {
    const app = await openMcp(open);
    const accept = await app.store.refuse('sessions');
    const broken = await stateless(app, 'tools/call', {
      name: 'helper',
      arguments: { message: 'Hi', sessionId: 's1' },
    });
    assert.deepEqual([broken.status, (broken.body as { code?: string }).code], [500, 'internal']);
    assert.doesNotMatch(
      JSON.stringify(broken.body),
      /refuse|sessions|SQL/i,
      'of what broke down its caller learns nothing',
    );
    await accept();
    await saveQuota(app.client, { agentName: 'helper', period: 'Daily', maxRuns: 1 });
    for (const expected of [undefined, 'quota-exceeded']) {
      const { isError, structuredContent, content } = resultOf(await stateless(app, 'tools/call', call));
      const { errorType, sessionId } = structuredContent as { errorType?: string; sessionId: unknown };
      assert.deepEqual([isError === true, errorType, sessionId], [expected !== undefined, expected, null]);
      assert.equal((content as { type: string }[])[0]?.type, 'text');
    }
  },
);

overHttp('SEC-19 what is no message that one message answers is no tool, whatever the host offers', async (open) => {
  const app = await openMcp(open, { host: { McpServer: { Agents: ['helper'], ControlPlane: 'Write' } } });
  const names = new Set(
    (resultOf(await stateless(app, 'tools/list'))['tools'] as { name: string }[]).map(({ name }) => name),
  );
  const left: string[] = [];
  for (const [feature, all] of Object.entries(operations))
    for (const [name, operation] of Object.entries(all) as [string, Readonly<Record<string, unknown>>][]) {
      const isWhole = ['signed', 'ownProtocol', 'upload', 'download', 'page'].every(
        (member) => operation[member] === undefined || operation[member] === false,
      );
      if (isWhole) continue;
      left.push(name);
      assert.ok(!names.has(`${feature}_${name}`), `${feature}_${name}`);
    }
  assert.ok(left.length > 8, left.join());
});
