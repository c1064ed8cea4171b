import assert from 'node:assert/strict';
import { AcpError } from '../../../src/contract/errors.ts';
import type { ToolDefinition } from '../../../src/engine/tools/tool.ts';
import { forEachDurableService, type TestApp } from '../../support/app.ts';
import { enqueue, followToEnd, getRun } from '../runs/run-calls.ts';
import { fileOf, mp3, pdf, png, readAll, wav } from './files.ts';

const upload = async (app: TestApp, content: string | Uint8Array, name: string, sessionId?: string): Promise<string> =>
  (
    await app.client.attachments.upload({
      query: sessionId === undefined ? {} : { sessionId },
      file: fileOf(content, name),
    })
  ).body.id;

const run = async (app: TestApp, agent: string, body: Record<string, unknown>) =>
  app.client.runs.start({ params: { name: agent }, body: { message: 'Look.', stream: false, ...body } });

const refusal = async (work: Promise<unknown>): Promise<string> => {
  try {
    await work;
  } catch (error) {
    assert.ok(error instanceof AcpError, String(error));
    return `${error.status} ${error.code}`;
  }
  return assert.fail('nothing was refused');
};

const base64 = (content: Uint8Array): string => Buffer.from(content).toString('base64');
/** The user's message as it went over the wire. */
const lastMessage = (app: TestApp): string => JSON.stringify(app.simulator.lastRequest().body);

interface Surface {
  readonly provider: string;
  readonly model: string;
  /** What each wire has for a file; null: the provider cannot take it. */
  readonly wire: Readonly<Record<'image' | 'pdf' | 'wav' | 'mp3', string | null>>;
}

const dataUrl = (type: string, content: Uint8Array): string => `data:${type};base64,${base64(content)}`;
const chat = {
  image: `"image_url":{"url":"${dataUrl('image/png', png)}"`,
  pdf: `"file":{"filename":"f.pdf","file_data":"${dataUrl('application/pdf', pdf)}"}`,
  wav: `"input_audio":{"data":"${base64(wav)}","format":"wav"}`,
  mp3: `"input_audio":{"data":"${base64(mp3)}","format":"mp3"}`,
};
const inline = (type: string, content: Uint8Array): string =>
  `"inlineData":{"mimeType":"${type}","data":"${base64(content)}"}`;

const surfaces: readonly Surface[] = [
  { provider: 'openai', model: 'gpt-4.1', wire: chat },
  { provider: 'local', model: 'llama', wire: chat },
  { provider: 'azure-openai', model: 'team', wire: chat },
  {
    provider: 'openai-responses',
    model: 'gpt-5-mini',
    wire: {
      image: `"type":"input_image","image_url":"${dataUrl('image/png', png)}"`,
      pdf: `"type":"input_file","filename":"f.pdf","file_data":"${dataUrl('application/pdf', pdf)}"`,
      wav: null,
      mp3: null,
    },
  },
  {
    provider: 'anthropic',
    model: 'claude-sonnet-4-5',
    wire: {
      image: `"source":{"type":"base64","media_type":"image/png","data":"${base64(png)}"}`,
      pdf: `"source":{"type":"base64","media_type":"application/pdf","data":"${base64(pdf)}"}`,
      wav: null,
      mp3: null,
    },
  },
  {
    provider: 'google',
    model: 'gemini-2.5-flash',
    wire: {
      image: inline('image/png', png),
      pdf: inline('application/pdf', pdf),
      wav: inline('audio/wav', wav),
      mp3: inline('audio/mpeg', mp3),
    },
  },
];

for (const { provider, model, wire } of surfaces)
  forEachDurableService(
    `ATT-10 ${provider} gets files in its own form, or the run fails as its error`,
    async (open) => {
      const app = await open({ simulator: {}, agents: [{ name: 'eye', model: { provider, model } }] });
      const files = { image: [png, 'f.png'], pdf: [pdf, 'f.pdf'], wav: [wav, 'f.wav'], mp3: [mp3, 'f.mp3'] } as const;
      for (const [kind, [content, name]] of Object.entries(files)) {
        const expected = wire[kind as keyof typeof files];
        const attachmentIds = [await upload(app, content, name)];
        for (const stream of [false, true]) {
          if (expected === null) {
            if (!stream) assert.equal(await refusal(run(app, 'eye', { attachmentIds })), '502 provider-error', kind);
            continue;
          }
          const reply = await run(app, 'eye', { attachmentIds, stream });
          if (reply.frames !== undefined)
            for await (const frame of reply.frames) assert.notEqual(frame.event, 'run.failed');
          assert.ok(lastMessage(app).includes(expected), `${kind}: ${lastMessage(app)}`);
        }
      }
      const text = await upload(app, 'Grüß Gott', 'hello.txt');
      await run(app, 'eye', { attachmentIds: [text] });
      assert.match(lastMessage(app), /<document name=\\\\?\\?"hello\.txt\\\\?\\?" id=/);
      assert.match(lastMessage(app), /Grüß Gott/);
    },
  );

forEachDurableService('RUN-12 what a run may not name is refused before any row', async (open) => {
  const app = await open({ agents: [{ name: 'eye' }] });
  const other = await upload(app, 'text', 'a.txt', 'other');
  const unknown = '0190b6a2-0000-7000-8000-000000000000';
  for (const attachmentIds of [[unknown], [other]])
    for (const sessionId of [undefined, 'mine']) {
      const body = { attachmentIds, ...(sessionId === undefined ? {} : { sessionId }) };
      assert.equal(await refusal(run(app, 'eye', body)), '400 attachment-not-found');
      assert.equal(
        await refusal(
          app.client.runs.start({
            params: { name: 'eye' },
            headers: { prefer: 'respond-async' },
            body: { message: 'Look.', ...body },
          }),
        ),
        '400 attachment-not-found',
      );
      assert.equal(
        await refusal(app.client.agents.estimate({ params: { name: 'eye' }, body: { message: 'Look.', ...body } })),
        '400 attachment-not-found',
      );
    }
  assert.deepEqual((await app.client.runs.list()).body, []);
  assert.equal((await run(app, 'eye', { attachmentIds: [other], sessionId: 'other' })).status, 200);
});

forEachDurableService('ATT-11 a run with a session keeps what it names; one without does not', async (open) => {
  const app = await open({ agents: [{ name: 'eye' }] });
  const id = await upload(app, png, 'a.png');
  const sessionOf = async () => (await app.client.attachments.list()).body.find((entry) => entry.id === id)?.sessionId;
  await run(app, 'eye', { attachmentIds: [id] });
  assert.equal(await sessionOf(), null);
  await run(app, 'eye', { attachmentIds: [id], sessionId: 's-1' });
  assert.equal(await sessionOf(), 's-1');
  assert.equal(await refusal(run(app, 'eye', { attachmentIds: [id], sessionId: 's-2' })), '400 attachment-not-found');
});

forEachDurableService(
  'ATT-10 ATT-16 a session keeps a reference, shows it to later turns, and survives its end',
  async (open) => {
    const app = await open({
      simulator: {},
      agents: [{ name: 'eye', model: { provider: 'openai', model: 'gpt-4.1' } }],
    });
    const id = await upload(app, png, 'a.png');
    await run(app, 'eye', { attachmentIds: [id], sessionId: 's' });
    assert.ok((await app.store.text()).includes(id));
    assert.ok(!(await app.store.text()).includes(base64(png)), 'the bytes are stored once, and not with the messages');
    await run(app, 'eye', { sessionId: 's', message: 'And now?' });
    assert.ok(lastMessage(app).includes(base64(png)));
    await app.client.attachments.remove({ params: { id } });
    await run(app, 'eye', { sessionId: 's', message: 'And now?' });
    assert.ok(!lastMessage(app).includes(base64(png)));
    assert.match(lastMessage(app), /no longer available/);
  },
);

forEachDurableService('ATT-10 a delete after the start does not disturb a run', async (open) => {
  const app = await open({
    simulator: {
      respond: () => {
        const first = app.simulator.requests.length === 1;
        return first
          ? { answer: { toolCalls: [{ id: 'c', name: 'forget', arguments: '{}' }] } }
          : { answer: { text: ['Still there.'] } };
      },
    },
    tools: [
      {
        name: 'forget',
        description: 'Deletes the attachment',
        inputSchema: { type: 'object' },
        execute: async () => {
          await app.client.attachments.remove({ params: { id } });
          return 'gone';
        },
      },
    ],
    agents: [{ name: 'eye', toolNames: ['forget'], model: { provider: 'openai', model: 'gpt-4.1' } }],
  });
  const id = await upload(app, png, 'a.png');
  assert.equal((await run(app, 'eye', { attachmentIds: [id] })).status, 200);
  assert.equal(app.simulator.requests.length, 2);
  assert.ok(lastMessage(app).includes(base64(png)));
});

forEachDurableService('ATT-10 a queued run whose attachment is gone fails before it starts', async (open) => {
  const idle = await open({ agents: [{ name: 'eye' }], service: { Scheduling: { RunWorker: false } } });
  const [gone, kept] = [await upload(idle, 'text', 'a.txt'), await upload(idle, 'text', 'b.txt')];
  const body = { message: 'Look.', attachmentIds: [gone, kept] };
  const runId = await enqueue(idle.client, 'eye', body);
  const whole = await enqueue(idle.client, 'eye', { ...body, attachmentIds: [kept] });
  await idle.client.attachments.remove({ params: { id: gone } });
  assert.equal((await getRun(idle.client, runId)).status, 'Queued');
  await idle.close();

  const app = await open({ folder: idle.folder });
  const events = await followToEnd(app.client, runId);
  assert.deepEqual(
    events.map(({ type }) => type),
    ['run.queued', 'run.failed'],
  );
  const { status, error } = await getRun(app.client, runId);
  assert.deepEqual([status, error?.class, error?.type], ['Failed', 'Infrastructure', 'attachment_not_found']);
  assert.match(error?.message ?? '', new RegExp(gone));
  await followToEnd(app.client, whole);
  assert.equal((await getRun(app.client, whole)).status, 'Completed');
});

forEachDurableService('AGENT-51 text counts as it is, every other attachment 1024 tokens', async (open) => {
  const app = await open({ agents: [{ name: 'eye' }] });
  const tokens = async (attachmentIds: readonly string[], sessionId?: string): Promise<number> =>
    (
      await app.client.agents.estimate({
        params: { name: 'eye' },
        body: {
          message: 'Look.',
          attachmentIds: [...attachmentIds],
          ...(sessionId === undefined ? {} : { sessionId }),
        },
      })
    ).body.promptTokens;
  const bare = await tokens([]);
  const [image, audio] = [await upload(app, png, 'a.png'), await upload(app, wav, 'a.wav')];
  const text = await upload(app, 'word '.repeat(300), 'a.txt');
  assert.equal(await tokens([image]), bare + 1024);
  assert.equal(await tokens([image, audio, image]), bare + 2048);
  const withText = await tokens([text]);
  assert.ok(withText > bare + 300 && withText < bare + 450, `${withText}`);
  await run(app, 'eye', { attachmentIds: [image], sessionId: 's' });
  assert.ok((await tokens([], 's')) > bare + 1024);
});

const saving = (content: Uint8Array, name: string): ToolDefinition => ({
  name: 'draw',
  description: 'Draws',
  inputSchema: { type: 'object' },
  execute: async (_args, { saveAttachment }) => {
    await saveAttachment(content, name);
    return 'Drawn.';
  },
});

forEachDurableService(
  'ATT-9 TOOL-20 a tool saves files for the run and its session, under the same rules',
  async (open) => {
    const script = [
      { when: { tool: 'draw' }, reply: { text: '{{last}}' } },
      { reply: { toolCalls: [{ name: 'draw', arguments: {} }] } },
    ];
    const good = await open({
      script,
      tools: [saving(png, 'x/drawing.png')],
      agents: [{ name: 'eye', toolNames: ['draw'] }],
    });
    const reply = await run(good, 'eye', { sessionId: 's' });
    const [saved] = (await good.client.attachments.list({ query: { sessionId: 's' } })).body;
    assert.ok(saved !== undefined && reply.status === 200 && reply.body !== undefined);
    assert.equal(saved.fileName, 'drawing.png');
    assert.equal(saved.runId, reply.headers['x-run-id']);
    assert.ok(String((reply.body as { output: string }).output).includes(saved.id));
    const bytes = await readAll((await good.client.attachments.download({ params: { id: saved.id } })).bytes);
    assert.deepEqual(bytes, png);

    const bad = await open({
      script,
      tools: [saving(Buffer.from('MZ\0\0'), 'a.exe')],
      agents: [{ name: 'eye', toolNames: ['draw'] }],
    });
    const refused = await run(bad, 'eye', {});
    assert.match(JSON.stringify(refused.body), /not allowed here/);
    assert.deepEqual((await bad.client.attachments.list()).body, []);
  },
);

forEachDurableService('ATT-17 SESS-11 a session takes its attachments with it, rows and bytes', async (open) => {
  const app = await open({ agents: [{ name: 'eye' }] });
  const linked = await upload(app, 'one', 'a.txt');
  const kept = await upload(app, 'one', 'a.txt');
  await run(app, 'eye', { attachmentIds: [linked], sessionId: 's' });
  const own = await upload(app, 'two', 'b.txt', 's');
  await app.client.sessions.remove({ params: { sessionId: 's' } });
  for (const id of [linked, own])
    assert.equal(await refusal(app.client.attachments.download({ params: { id } })), '404 not-found');
  const bytes = (await app.client.attachments.download({ params: { id: kept } })).bytes;
  assert.equal((await readAll(bytes)).toString(), 'one');
});
