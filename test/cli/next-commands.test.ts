import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nextCommands } from '../../src/cli/runs/next-commands.ts';

const globals = { json: false, set: [] } as never;
const pause = {
  ...{ runId: 'r1', sessionId: 's1', clientToolCalls: [] },
  approvals: [{ requestId: 'a' }, { requestId: 'b' }],
} as never;

/** The commands that answer a run of two calls, of which these wait in the mailbox. */
const commandsOf = async (jobId: string | null, ...waiting: { readonly id: string; readonly runId: string }[]) => {
  const client = {
    runs: { get: async () => ({ body: { id: 'r1', agentName: 'helper', jobId } }) },
    approvals: { list: async () => ({ body: waiting }) },
  };
  const commands = await nextCommands(client as never, globals, pause);
  return commands.map(({ words }) => words.slice(1, 4).join(' '));
};

test('APPR-30 the next command is the next run of the session, until a call was decided in the mailbox', async () => {
  const [one, two] = [
    { id: '1', runId: 'r1' },
    { id: '2', runId: 'r1' },
  ];
  const inBand = ['run helper --session', 'run helper --session'];
  assert.deepEqual(await commandsOf(null, one, two), inBand);
  // A run without rows, such as one that is not recorded, is decided in its session alone.
  assert.deepEqual(await commandsOf(null, { id: '3', runId: 'r2' }), inBand);
  assert.deepEqual(await commandsOf(null, two), ['approvals approve 2', 'approvals reject 2']);
  assert.equal((await commandsOf('j1', one, two)).length, 4);
});
