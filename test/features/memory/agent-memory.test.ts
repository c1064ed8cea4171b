import assert from 'node:assert/strict';
import {
  type AgentSetup,
  forEachDurableService,
  forEachService,
  type OpenApp,
  type TestApp,
} from '../../support/app.ts';
import type { Scenario, SimulatedRequest } from '../../support/providers/scenario.ts';
import { fileOf, readAll } from '../attachments/files.ts';
import { calls, conversation, lastOf, offeredTools, says } from '../runs/chat-requests.ts';
import { runJson } from '../runs/run-calls.ts';
import { getSession, nothingLeft, removeSession, sessionRows } from '../sessions/session-calls.ts';

/** A content `{ length }` becomes a text of that many bytes, so that a message need not hold it. */
const written = (args: unknown): unknown => {
  const { content, ...others } = args as { content?: string | { length: number } };
  return typeof content === 'object' ? { ...others, content: 'x'.repeat(content.length) } : args;
};

/** The user's message is a list of calls as JSON, `[["tool", {…}], …]`; the answer is what the last one returned. */
const respond = (request: SimulatedRequest): Scenario => {
  const message = lastOf(request, 'user');
  const wanted = message.startsWith('[') ? (JSON.parse(message) as [string, unknown][]) : [];
  const lines = conversation(request);
  const done = lines.slice(lines.lastIndexOf(`user: ${message}`)).filter((line) => line.startsWith('tool:')).length;
  const next = wanted[done];
  return next === undefined ? says(lastOf(request, 'tool')) : calls(next[0], written(next[1]), `c-${done}`);
};

const openWith = (open: OpenApp, agent: Partial<AgentSetup>): Promise<TestApp> =>
  open({
    simulator: { respond },
    agents: [
      { name: 'helper', model: { provider: 'local', model: 'any' }, ...agent },
      { name: 'other', model: { provider: 'local', model: 'any' }, ...agent },
    ],
  });

const allMemory = { memory: { enableTodo: true, enableFileMemory: true, enableTextSearch: true } };

const use = async (app: TestApp, sessionId: string | null, ...wanted: [string, unknown][]): Promise<unknown> => {
  const { output } = await runJson(app.client, 'helper', { message: JSON.stringify(wanted), sessionId });
  try {
    return JSON.parse(output ?? '');
  } catch {
    // A plain text: the content of a file, or an error for the model.
    return output;
  }
};

forEachService('TOOL-9 memory flags and the harness add their tools, each disable flag removes some', async (open) => {
  const todo = ['todo_list', 'todo_write'];
  const files = ['file_list', 'file_read', 'file_write', 'file_delete'];
  const cases: [Record<string, unknown>, string[]][] = [
    [{}, []],
    [{ memory: { enableTodo: true } }, todo],
    [{ memory: { enableFileMemory: true } }, files],
    [allMemory, [...todo, ...files, 'file_search']],
    [{ harness: {} }, [...todo, ...files, 'set_mode']],
    [{ harness: { disableTodo: true } }, [...files, 'set_mode']],
    [{ harness: { disableFileMemory: true, disableModes: true } }, todo],
    [{ harness: {}, memory: { enableTextSearch: true } }, [...todo, ...files, 'file_search', 'set_mode']],
  ];
  const app = await open({ simulator: { respond } });
  for (const [index, [settings, expected]] of cases.entries()) {
    await app.createAgent({ name: `a${index}`, model: { provider: 'local', model: 'any' }, ...settings });
    await runJson(app.client, `a${index}`, 'Hi');
    assert.deepEqual(offeredTools(app.simulator.lastRequest()), expected, JSON.stringify(settings));
  }
});

forEachService('AGENT-40 TOOL-9 the todo list belongs to the session and lasts over its runs', async (open) => {
  const app = await openWith(open, allMemory);
  const todos = [
    { text: 'Buy paint', status: 'completed' },
    { text: 'Paint', status: 'in_progress' },
  ];
  assert.deepEqual(await use(app, 's1', ['todo_list', {}]), { todos: [] });
  assert.deepEqual(await use(app, 's1', ['todo_write', { todos }]), { todos });
  assert.deepEqual(await use(app, 's1', ['todo_list', {}]), { todos });
  assert.deepEqual(await use(app, 's2', ['todo_list', {}]), { todos: [] });
  assert.match(String(await use(app, 's1', ['todo_write', { todos: [{ text: '', status: 'new' }] }])), /do not fit/);
  assert.deepEqual(await use(app, 's1', ['todo_write', { todos: [] }], ['todo_list', {}]), { todos: [] });
});

forEachService('AGENT-40 TOOL-9 files of a session: write, list, read, search, delete', async (open) => {
  const app = await openWith(open, allMemory);
  const content = 'Line one\nline TWO\nline three';
  assert.deepEqual(await use(app, 's', ['file_write', { path: 'notes/a.md', content }]), {
    path: 'notes/a.md',
    sizeBytes: content.length,
  });
  await use(app, 's', ['file_write', { path: 'b.txt', content: 'ünï' }]);
  assert.deepEqual(await use(app, 's', ['file_list', {}]), {
    files: [
      { path: 'b.txt', sizeBytes: 5 },
      { path: 'notes/a.md', sizeBytes: content.length },
    ],
  });
  assert.equal(await use(app, 's', ['file_read', { path: 'notes/a.md' }]), content);
  assert.equal(
    await use(app, 's', ['file_read', { path: 'notes/a.md', firstLine: 2, maxLines: 1 }]),
    'line TWO\n[Lines 2 to 2 of 3]',
  );
  assert.deepEqual(await use(app, 's', ['file_search', { text: 'two' }]), {
    matches: [{ path: 'notes/a.md', line: 2, text: 'line TWO' }],
    more: false,
  });
  assert.equal(await use(app, 't', ['file_read', { path: 'notes/a.md' }]), 'There is no file "notes/a.md".');
  assert.deepEqual(await use(app, 's', ['file_delete', { path: 'notes/a.md' }]), { deleted: 'notes/a.md' });
  assert.equal(await use(app, 's', ['file_delete', { path: 'notes/a.md' }]), 'There is no file "notes/a.md".');
});

forEachDurableService('SESS-17 a branch copies neither the todo list nor the files of its parent', async (open) => {
  const app = await openWith(open, allMemory);
  const todos = [{ text: 'Paint', status: 'in_progress' }];
  const noted = { path: 'a.txt', content: 'Blue' };
  await use(app, 'parent', ['todo_write', { todos }], ['file_write', noted]);
  await app.client.sessions.branch({ params: { sessionId: 'parent' }, body: { newSessionId: 'branch' } });
  assert.deepEqual(await use(app, 'branch', ['todo_list', {}]), { todos: [] });
  assert.deepEqual(await use(app, 'branch', ['file_list', {}]), { files: [] });
  // What the branch writes under the same names is its own.
  await use(app, 'branch', ['todo_write', { todos: [] }], ['file_write', { ...noted, content: 'Red' }]);
  assert.deepEqual(await use(app, 'parent', ['todo_list', {}]), { todos });
  assert.equal(await use(app, 'parent', ['file_read', { path: noted.path }]), 'Blue');
});

forEachService('TOOL-10 a path is no way out, and no way to write what cannot be listed', async (open) => {
  const app = await openWith(open, allMemory);
  for (const path of [
    '',
    '/a',
    'a/',
    'a//b',
    '.',
    '..',
    'a/../b',
    './a',
    'a b',
    'ä',
    'a\\b',
    'a\u0000',
    'x'.repeat(257),
  ])
    assert.match(String(await use(app, 's', ['file_write', { path, content: 'x' }])), /do not fit: path/, path);
  for (const path of ['a', '.hidden', 'a..b', '...', 'x'.repeat(256)])
    assert.deepEqual(await use(app, 's', ['file_write', { path, content: 'x' }]), { path, sizeBytes: 1 });
});

forEachService('TOOL-10 1 MiB a file, 10 MiB a session: beyond is a tool error', async (open) => {
  // Without what earlier turns wrote, which a model is sent again with each call.
  const compaction = { strategy: 'SlidingWindow', triggerTurns: 2, minimumPreservedTurns: 1 };
  const app = await openWith(open, { ...allMemory, compaction });
  const write = (path: string, length: number) => use(app, 's', ['file_write', { path, content: { length } }]);
  assert.match(String(await write('a', 1_048_577)), /1048577 bytes/);
  for (let index = 0; index < 9; index += 1) await write(`f${index}`, 1_048_576);
  assert.deepEqual(await write('f9', 1_048_570), { path: 'f9', sizeBytes: 1_048_570 });
  assert.match(String(await write('g', 7)), /All files together may have 10485760 bytes; 10485754 are in use/);
  assert.deepEqual(await write('g', 6), { path: 'g', sizeBytes: 6 });
  assert.deepEqual(await write('f9', 1_048_570), { path: 'f9', sizeBytes: 1_048_570 });
});

forEachDurableService('AGENT-40 without a session everything belongs to the run and goes with it', async (open) => {
  const app = await openWith(open, allMemory);
  const todos = [{ text: 'Paint', status: 'pending' }];
  const files = [{ path: 'a', sizeBytes: 1 }];
  assert.deepEqual(
    await use(app, null, ['todo_write', { todos }], ['file_write', { path: 'a', content: 'x' }], ['file_list', {}]),
    { files },
  );
  assert.deepEqual(await use(app, null, ['file_list', {}]), { files: [] });
  assert.doesNotMatch(await app.store.text(), /"owner":"run:/);
});

forEachDurableService('AGENT-40 SESS-11 files, todo entries and mode go with the session', async (open) => {
  const app = await openWith(open, { harness: {} });
  const todos = [{ text: 'Paint', status: 'pending' }];
  for (const session of ['s', 't'])
    await use(
      app,
      session,
      ['todo_write', { todos }],
      ['file_write', { path: 'a', content: 'x' }],
      ['set_mode', { mode: 'plan' }],
    );
  const owners = async () => new Set((await app.store.text()).match(/"owner":"session:[^"]*"/g));
  assert.deepEqual(await owners(), new Set(['"owner":"session:s"', '"owner":"session:t"']));
  await app.client.sessions.remove({ params: { sessionId: 's' } });
  assert.deepEqual(await owners(), new Set(['"owner":"session:t"']));
  assert.deepEqual(await use(app, 's', ['todo_list', {}]), { todos: [] });
});

forEachDurableService('SESS-11 a deletion of which one part fails deletes nothing', async (open) => {
  const app = await openWith(open, { harness: {} });
  const todos = [{ text: 'Paint', status: 'pending' }];
  await use(app, 's', ['todo_write', { todos }], ['file_write', { path: 'a', content: 'x' }]);
  const { body: file } = await app.client.attachments.upload({ query: { sessionId: 's' }, file: fileOf('text') });
  const session = await getSession(app.client, 's');
  const accept = await app.store.refuse('agent state');
  await assert.rejects(removeSession(app.client, 's'));
  await accept();
  assert.deepEqual(await getSession(app.client, 's'), session);
  const download = () => app.client.attachments.download({ params: { id: file.id } });
  assert.equal(String(await readAll((await download()).bytes)), 'text');
  assert.deepEqual(await use(app, 's', ['file_list', {}]), { files: [{ path: 'a', sizeBytes: 1 }] });
  await removeSession(app.client, 's');
  assert.deepEqual(await sessionRows(app), nothingLeft);
  await assert.rejects(download());
});

forEachService('AGENT-31 AGENT-41 the harness tells of what it gives, after the own instructions', async (open) => {
  const app = await open({ simulator: { respond } });
  const text = async (name: string, more: Record<string, unknown>, sessionId: string | null = null) => {
    const model = { provider: 'local', model: 'any' };
    await app.createAgent({ name, model, instructions: 'Own.', ...more });
    await runJson(app.client, name, { message: 'Hi', sessionId });
    return conversation(app.simulator.lastRequest())[0] ?? '';
  };
  await app.createAgent({ name: 'base', model: { provider: 'local', model: 'any' }, instructions: 'Shared.' });
  const full = await text('full', { sharedInstructionsName: 'base', harness: {} });
  assert.match(
    full,
    /^system: Shared\.\n\nOwn\.\n\nPlan work .*todo_write.*\nKeep notes .*files.*\nYou work in one of two modes/s,
  );
  assert.match(full, /The current mode is "act"\.$/);
  const own = {
    parameters: [{ name: 'who', kind: 'Text', defaultValue: 'Ada' }],
    harness: { harnessInstructions: 'Work for {{who}}.', disableModes: true },
  };
  assert.equal(await text('own', own), 'system: Own.\n\nWork for Ada.');
  const bare = { harness: { disableModes: true, disableTodo: true, disableFileMemory: true } };
  assert.equal(await text('bare', bare), 'system: Own.');
});

forEachService('AGENT-41 set_mode: the mode belongs to the session and the next run is told of it', async (open) => {
  const app = await openWith(open, { harness: {} });
  assert.deepEqual(await use(app, 's', ['set_mode', { mode: 'plan' }]), { mode: 'plan' });
  await use(app, 's');
  assert.match(conversation(app.simulator.lastRequest())[0] ?? '', /The current mode is "plan"\.$/);
  await use(app, 't');
  assert.match(conversation(app.simulator.lastRequest())[0] ?? '', /The current mode is "act"\.$/);
  assert.match(String(await use(app, 's', ['set_mode', { mode: 'fly' }])), /mode must be one of "plan", "act"/);
});

forEachService('AGENT-41 the harness compacts at maxContextWindowTokens', async (open) => {
  const app = await openWith(open, {
    harness: { maxContextWindowTokens: 1200, maxOutputTokens: 100, disableTodo: true, disableModes: true },
  });
  for (let turn = 0; turn < 8; turn += 1)
    await use(app, 's', ['file_write', { path: `f${turn}`, content: 'word '.repeat(100) }]);
  const lines = conversation(app.simulator.lastRequest());
  assert.ok(lines.length < 8 * 4, `${lines.length} messages were sent`);
});
