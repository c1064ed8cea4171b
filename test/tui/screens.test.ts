import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createFolder, type Folder } from '../cli/support.ts';
import { eventually, processMs } from '../support/eventually.ts';
import { openTerminal, withoutTmux } from './terminal.ts';

// The long delay stands for a model that is at work for as long as a test looks at it.
const script = `
rules:
  - when: { tool: refund }
    reply: { text: "Refunded: {{last}}", usage: { inputTokens: 30, outputTokens: 8 } }
  - when: { message: refund }
    reply: { toolCalls: [{ name: refund, arguments: { order: A-7, amount: 120.5 } }] }
  - when: { tool: call_worker }
    reply: { text: "The worker says: {{last}}" }
  - when: { message: delegate }
    reply: { toolCalls: [{ name: call_worker, arguments: { message: time } }] }
  - when: { tool: clock_now }
    reply: { text: "It is {{last}}." }
  - when: { message: time }
    reply: { toolCalls: [{ name: clock_now, arguments: { timeZone: UTC } }] }
  - when: { message: slowly }
    reply: { text: "one two three four", chunkSize: 8, delay: 10m }
  - when: { message: quickly }
    reply: { text: "alpha beta gamma delta", chunkSize: 5, delay: 20ms }
  - when: { message: break }
    reply: { error: { type: provider_error, httpStatus: 500 } }
  - when: { message: weird }
    reply: { text: "red \\e[31m bell \\a end \\u202Ereversed" }
  - reply: { text: "Hello there.", usage: { inputTokens: 10, outputTokens: 3 } }
`;

const refundModule = `
import { defineModule } from 'acp';
export default defineModule({
  tools: [{
    name: 'refund',
    description: 'Pays an order back.',
    requiresApproval: true,
    effect: 'External',
    inputSchema: { type: 'object', properties: { order: { type: 'string' }, amount: { type: 'number' } } },
    execute: async ({ order }) => \`paid \${order}\`,
  }],
});
`;

const agents = ['hello', 'worker', 'supervisor', 'clerk'] as const;
const uses: Readonly<Record<(typeof agents)[number], string>> = {
  hello: 'toolNames: [clock_now]',
  worker: 'toolNames: [clock_now]',
  supervisor: 'callableAgentNames: [worker]',
  clerk: 'toolNames: [refund]',
};

/** A folder with the agents applied. `serve` comes after, so that both ways to the store are tried. */
const prepare = async (t: Parameters<typeof createFolder>[0]): Promise<Folder> => {
  const folder = createFolder(t);
  folder.write('scripts/demo.yaml', script);
  folder.write('modules/refund.mjs', refundModule);
  folder.write(
    'service.yaml',
    `
Host:
  Url: http://127.0.0.1:0
  LogLevel: error
  Modules: [./modules/clock.mjs, ./modules/refund.mjs]
Service:
  Providers:
    Scripted: { demo: { File: ./scripts/demo.yaml } }
  Drain: { Timeout: 1s }
`,
  );
  for (const name of agents)
    folder.write(
      `agents/${name}.yaml`,
      `name: ${name}\nmodel: { provider: demo, model: demo-1 }\ninstructions: Hi.\n${uses[name]}\n`,
    );
  const applied = await folder.acp(['agents', 'apply', '-f', 'agents']);
  assert.equal(applied.code, 0, applied.stderr);
  return folder;
};

const start = async (url: string, agent: string, message: string, more: object = {}): Promise<void> => {
  const answer = await fetch(`${url}/api/agents/${agent}/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ message, stream: false, ...more }),
  });
  await answer.text();
};

const queue = async (url: string, agent: string, message: string, more: object = {}): Promise<void> => {
  const answer = await fetch(`${url}/api/agents/${agent}/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', prefer: 'respond-async' },
    body: JSON.stringify({ message, ...more }),
  });
  assert.equal(answer.status, 202, await answer.text());
};

/** No row is wider than the terminal, and the frame fills it: the keys stand in the last row. */
const isWholeFrame = (screen: string, rows: number): boolean =>
  screen.split('\n').slice(0, rows).at(-1)?.includes('q quit') === true;

describe('acp tui', { skip: withoutTmux }, () => {
  test('lists runs as they come and go, opens one, and leaves the terminal as it was', async (t) => {
    const folder = await prepare(t);
    const { url } = await folder.serve();
    await start(url, 'hello', 'break');
    const terminal = await openTerminal(t, folder.path, ['tui', '--url', url]);
    await terminal.until(/▸ hello +✗ failed/);
    assert.deepEqual(await terminal.state(), { alternate: true, cursor: false });
    await terminal.press('End');
    await start(url, 'worker', 'hi');
    const listed = await terminal.until(/ worker +✓ completed +\d+s +\d+ms +13/);
    assert.match(listed, /▸ hello +✗ failed/, 'the choice stays with its run');
    assert.match(listed, /provider_error/, 'and says why it failed');
    await terminal.press('Up', 'Enter');
    const opened = await terminal.until(/Events[\s\S]*completed · /);
    assert.match(opened, /worker v1 {2}✓ completed · \d+ms · 13 tokens \(10 in, 3 out\)/);
    assert.match(opened, /started worker v1 · demo\/demo-1\n.*Hello there\.\n.*13 tokens/);
    await terminal.press('?');
    await terminal.until(/Everywhere/);
    await terminal.press('Escape');
    await terminal.until(/Events/);
    await terminal.press('q');
    await terminal.until(/ended 0/);
    assert.deepEqual(await terminal.state(), { alternate: false, cursor: true });
  });

  test('shows a run word by word, cancels it after a question, and scores it', async (t) => {
    const folder = await prepare(t);
    const { url } = await folder.serve();
    const terminal = await openTerminal(t, folder.path, ['tui', '--url', url]);
    await terminal.until(/No runs yet/);
    await queue(url, 'hello', 'slowly');
    await terminal.until(/● running[\s\S]*writing: one two/);
    await terminal.press('Enter');
    const live = await terminal.until(/Events ─+ live ─[\s\S]*one two/);
    assert.ok(!live.includes('three'));
    await terminal.press('c');
    await terminal.until(/Cancel hello …[0-9a-f]{6} and everything it called\?/);
    await terminal.press('n');
    await terminal.until((text) => !text.includes('Cancel hello'));
    await terminal.press('c');
    await terminal.until(/y yes/);
    await terminal.press('y');
    await terminal.until(/■ canceled[\s\S]*canceled \(Requested\)/);
    await terminal.press('c');
    await terminal.until(/is not running any more/);
    await terminal.press('s');
    await terminal.until(/1 2 3 4 5 stars/);
    await terminal.press('4');
    await terminal.until(/Why\?/);
    await terminal.type('too slow');
    await terminal.press('Enter');
    await terminal.until(/Scored hello …[0-9a-f]{6}: 4 of 5 stars\./);
    const { body } = await fetch(`${url}/api/runs`).then(async (answer) => ({
      body: (await answer.json()) as { id: string }[],
    }));
    const scores = await fetch(`${url}/api/runs/${body[0]?.id}/feedback`);
    const [score] = (await scores.json()) as { kind: string; value: number; comment: string }[];
    assert.deepEqual([score?.kind, score?.value, score?.comment], ['Stars', 4, 'too slow']);
  });

  test('shows the tree of a run beside its events, opens a called run, and fits windows of every size', async (t) => {
    const folder = await prepare(t);
    const { url } = await folder.serve();
    await start(url, 'supervisor', 'delegate');
    const terminal = await openTerminal(t, folder.path, ['tui', '--url', url], { columns: 120, rows: 40 });
    await terminal.until(/supervisor +✓ completed/);
    await terminal.press('Enter');
    const wide = await terminal.until(/└─ worker[\s\S]*completed · /);
    assert.match(wide, /Tree of 2 runs ─+ │ ─ Events/);
    assert.match(wide, /→ call_worker \{"message":"time"\}\n.*✓ [\d.]+m?s It is/);
    assert.ok(isWholeFrame(wide, 40));
    await terminal.press('Tab');
    await terminal.press('Down');
    await terminal.until(/worker v1[\s\S]*→ clock_now \{"timeZone":"UTC"\}/);
    await terminal.resize(80, 24);
    const narrow = await terminal.until((text) => isWholeFrame(text, 24) && /Tree of 2 runs ─+\n/.test(text));
    assert.ok(narrow.split('\n').every((row) => [...row].length <= 80));
    await terminal.press('Escape');
    await terminal.resize(60, 15);
    const small = await terminal.until((text) => isWholeFrame(text, 15) && /▸ supervisor/.test(text));
    assert.ok(small.split('\n').every((row) => [...row].length <= 60));
    await terminal.resize(30, 8);
    await terminal.until(/The window is too small/);
    await terminal.resize(80, 24);
    await terminal.until((text) => isWholeFrame(text, 24) && /▸ supervisor/.test(text));
  });

  test('decides calls that wait: one is approved and goes on, one is rejected with a reason', async (t) => {
    const folder = await prepare(t);
    const { url } = await folder.serve();
    await queue(url, 'clerk', 'refund one', { sessionId: 'one' });
    // APPR-10: the calls of a run with a reader are in the same list.
    await start(url, 'clerk', 'refund two', { sessionId: 'two' });
    const terminal = await openTerminal(t, folder.path, ['tui', '--url', url]);
    await terminal.until(/\? needs approval[\s\S]*\? needs approval/);
    await terminal.until(/Approvals 2/);
    await terminal.press('Tab');
    const inbox = await terminal.until(/\[Approvals 2\]/);
    assert.match(inbox, /▸ refund +clerk +\{"amount":120\.5,/);
    assert.match(inbox, /Arguments\n +\{\n +"amount": 120\.5,/);
    await terminal.press('a');
    await terminal.until(/Approve refund for clerk\?/);
    await terminal.press('y');
    await terminal.until(/Approved refund\. Run …[0-9a-f]{6} goes on\./);
    await terminal.press('r');
    await terminal.until(/Reason for the model/);
    await terminal.type('not this one');
    await terminal.press('Enter');
    await terminal.until(/Reject the call of refund\?/);
    await terminal.press('y');
    await terminal.until(/Rejected refund\./);
    await terminal.until(/Nothing waits for an approval/);
    await terminal.press('Escape');
    await terminal.until((text) => text.match(/clerk +✓ completed/g)?.length === 2);
  });

  test('answers calls that wait for whoever started the run: the session goes on, and the run that does is shown', async (t) => {
    const folder = await prepare(t);
    const { url } = await folder.serve();
    await start(url, 'clerk', 'refund one', { sessionId: 'one' });
    const terminal = await openTerminal(t, folder.path, ['tui', '--url', url]);
    await terminal.until(/▸ clerk +\? needs approval/);
    await terminal.press('Enter');
    await terminal.until(/Waits for your answer about refund: a/);
    await terminal.press('a');
    await terminal.until(/"amount": 120\.5,[\s\S]*Approve refund for clerk\?/);
    await terminal.press('y');
    await terminal.until(/Approved 1; the session goes on\./);
    await terminal.until(/clerk v1 {2}✓ completed[\s\S]*→ refund[\s\S]*Refunded: paid A-7/);
    await terminal.press('s');
    await terminal.until(/1 2 3 4 5 stars/);
    await terminal.press('+');
    await terminal.until(/Why\?/);
    await terminal.press('Enter');
    await terminal.until(/Scores: overall good/);
    await terminal.press('Escape');
    await terminal.until(/clerk +✓ completed[\s\S]*clerk +→ continued/);
    await terminal.press('Down');
    await terminal.until(/▸ clerk +→ continued/);
    await terminal.press('Enter');
    await terminal.until(/Went on in run [0-9a-f]{8}-/);
  });

  test('finds its way in a thousand runs: to the last one, and to those of one agent', async (t) => {
    const folder = await prepare(t);
    const { url } = await folder.serve();
    await start(url, 'hello', 'break');
    for (let done = 0; done < 1000; done += 10)
      await Promise.all(
        Array.from({ length: 10 }, (_none, index) => start(url, index === 0 ? 'worker' : 'hello', 'hi')),
      );
    const terminal = await openTerminal(t, folder.path, ['tui', '--url', url]);
    await terminal.until(/1–\d+ of 100\+/);
    // Each look at the end brings more runs, until there are no older ones.
    await eventually(
      'the end of the list',
      async () => {
        await terminal.press('End');
        return (await terminal.screen()).includes('of 1,001 ');
      },
      processMs,
    );
    await terminal.press('End');
    await terminal.until(/▸ hello +✗ failed/);
    await terminal.press('/');
    await terminal.until(/Agent: .*\n.*hello +.*worker/);
    await terminal.type('wor');
    await terminal.press('Enter');
    const found = await terminal.until(/agent worker ─/);
    assert.doesNotMatch(found, / hello /);
    await terminal.until(/▸ worker[\s\S]*1–\d+ of 100/);
    await terminal.press('f');
    await terminal.until(/▸ Status +any/);
    await terminal.press('Left', 'Left', 'Left');
    await terminal.until(/needs input, agent worker/);
    await terminal.until(/No run matches the filters/);
    await terminal.press('x');
    await terminal.until(/1–\d+ of 100\+/);
  });

  test('goes on after the service was away, and says meanwhile that it is', async (t) => {
    const folder = await prepare(t);
    const first = await folder.serve();
    await start(first.url, 'hello', 'hi');
    const terminal = await openTerminal(t, folder.path, ['tui', '--url', first.url]);
    await terminal.until(/● connected[\s\S]*▸ hello/);
    await queue(first.url, 'hello', 'slowly');
    await terminal.until(/● running/);
    await terminal.press('Home', 'Enter');
    await terminal.until(/Events ─+ live[\s\S]*one two/);
    first.running.child.kill('SIGKILL');
    await terminal.until(/✗ reconnecting[\s\S]*nothing listens there/);
    await terminal.until(/Events ─+ reconnecting/);
    await folder.serve(['--url', first.url]);
    await terminal.until(/● connected/);
    const after = await terminal.until((text) => !text.includes('reconnecting'));
    assert.equal(after.match(/started hello v1/g)?.length, 1, 'no event is shown twice');
    await terminal.press('q');
    await terminal.until(/ended 0/);
  });

  test('works on the store itself where no service runs', async (t) => {
    const folder = await prepare(t);
    assert.equal((await folder.acp(['run', 'hello', 'time'])).code, 0);
    const terminal = await openTerminal(t, folder.path, ['tui']);
    await terminal.until(/store of this folder, no service[\s\S]*▸ hello +✓ completed/);
    await terminal.press('Enter');
    await terminal.until(/→ clock_now[\s\S]*✓ \d+ms [\s\S]*It is/);
    await terminal.press('C-c');
    await terminal.until(/ended 0/);
    const after = await folder.acp(['runs', 'list', '--json']);
    assert.equal(after.code, 0, 'the store is free again');
  });

  test('ended from outside leaves the terminal as it was', async (t) => {
    const folder = await prepare(t);
    const { url } = await folder.serve();
    const terminal = await openTerminal(t, folder.path, ['tui', '--url', url]);
    await terminal.until(/No runs yet/);
    await terminal.signal('SIGTERM');
    await terminal.until(/ended 143/);
    assert.deepEqual(await terminal.state(), { alternate: false, cursor: true });
  });

  test('sets no colour where none is wanted, and shows nothing that rewrites the screen', async (t) => {
    const folder = await prepare(t);
    const { url } = await folder.serve();
    await start(url, 'hello', 'weird');
    const sequence = String.fromCharCode(27);
    for (const env of [{ NO_COLOR: '1' }, { TERM: 'dumb' }]) {
      const plain = await openTerminal(t, folder.path, ['tui', '--url', url], { env });
      await plain.until(/▸ hello +✓ completed/);
      await plain.press('Enter');
      const text = await plain.until(/red/);
      assert.match(text, /red �\[31m bell � end �reversed/);
      assert.ok(!(await plain.styledScreen()).includes(sequence));
      await plain.press('q');
      await plain.until(/ended 0/);
    }
    const colored = await openTerminal(t, folder.path, ['tui', '--url', url]);
    await colored.until(/▸ hello +✓ completed/);
    assert.match(
      await colored.styledScreen(),
      new RegExp(`${sequence}\\[(\\d+;)*7m[^\\n]*▸ hello`),
      'the choice is inverted',
    );
  });

  test('without a terminal or without a service says so and changes nothing', async (t) => {
    const folder = createFolder(t);
    const piped = await folder.acp(['tui']);
    assert.deepEqual(
      [piped.code, piped.stdout, piped.stderr.split('\n', 1)[0]],
      [2, '', 'error: The screens need a terminal. `acp runs list` and `acp runs tail` write to files and pipes.'],
    );
    const terminal = await openTerminal(t, folder.path, ['tui', '--url', 'http://127.0.0.1:9']);
    const text = await terminal.until(/ended 8/);
    assert.match(text, /error: http:\/\/127\.0\.0\.1:9 cannot be reached/);
    assert.deepEqual(await terminal.state(), { alternate: false, cursor: true });
  });
});
