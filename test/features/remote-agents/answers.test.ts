import assert from 'node:assert/strict';
import { test } from 'node:test';
import { forEachServiceInFile, openApp } from '../../support/app.ts';
import { findings, recordingGuard } from '../guards/guard-world.ts';
import { followToEnd, runJson } from '../runs/run-calls.ts';
import { childOf, rawAgent, remoteSetup, task, type Wire } from './remote-world.ts';

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

test('MCP-18 answers are told in one text, and nothing in them is hidden', async (t) => {
  let parts: readonly Wire[] = [];
  let more: Wire = {};
  const partner = await rawAgent(t, () => ({
    task: task('COMPLETED', { artifacts: [{ artifactId: 'a', parts }, ...(more.artifacts ?? [])], ...more.task }),
  }));
  const app = await openApp(t, 'in process', remoteSetup(partner.cardUrl));
  const said = async (given: readonly Wire[], others: Wire = {}) => {
    parts = given;
    more = others;
    return (await runJson(app.client, 'boss', 'ask this')).output;
  };
  assert.equal(await said([{ text: 'a\u202eb' }, { text: 'c\u200bd' }]), 'a\\u{202e}bc\\u{200b}d');
  assert.equal(await said([{ data: { b: [1, 'x\u2066'] } }]), '{"b":[1,"x\\\\u{2066}"]}'.replace('\\\\', '\\'));
  // The same of version 0.3, and of two artifacts.
  const second = [{ artifactId: 'b', parts: [{ kind: 'data', data: 7 }] }];
  assert.equal(await said([{ kind: 'text', text: 'one' }], { artifacts: second }), 'one\n7');
  assert.equal(await said([{ url: 'https://a.invalid/f\u200b.png' }]), '[file https://a.invalid/f\\u{200b}.png]');
  const status = { state: 'TASK_STATE_COMPLETED', message: { role: 'ROLE_AGENT', parts: [{ text: 'only said' }] } };
  assert.equal(await said([], { task: { artifacts: [], status } }), 'only said');
  const history = [
    { role: 'ROLE_USER', parts: [{ text: 'this' }] },
    { role: 'ROLE_AGENT', parts: [{ text: 'said before' }] },
  ];
  assert.equal(await said([], { task: { artifacts: [], history } }), 'said before');
});

forEachServiceInFile('MCP-58 a file in an answer becomes an attachment of the run that asked', async (open, t) => {
  const parts = [
    { text: 'Look: ' },
    { raw: png.toString('base64'), filename: 'dot.png', mediaType: 'image/png' },
    { kind: 'file', file: { bytes: png.toString('base64'), name: '../../etc/passwd', mimeType: 'image/png' } },
    {
      raw: Buffer.from([0x4d, 0x5a, 0, 1, 0, 255]).toString('base64'),
      filename: 'x.exe',
      mediaType: 'application/x-msdownload',
    },
  ];
  const partner = await rawAgent(t, () => ({ task: task('COMPLETED', { artifacts: [{ artifactId: 'a', parts }] }) }));
  const app = await open(remoteSetup(partner.cardUrl));
  const { output } = await runJson(app.client, 'boss', { message: 'ask this', sessionId: 's1' });
  assert.match(output ?? '', /^Look: \n\[a file of type application\/x-msdownload was left out\]/);
  const kept = (await app.client.attachments.list({ query: { sessionId: 's1' } })).body;
  assert.deepEqual(kept.map(({ fileName }) => fileName).sort(), ['dot.png', 'result.png']);
  for (const { id } of kept) assert.ok(output?.includes(id));
});

forEachServiceInFile(
  'MCP-58 an answer with very many files leaves no more attachments than one of a tool may',
  async (open, t) => {
    const parts = Array.from({ length: 100 }, () => ({ raw: png.toString('base64'), mediaType: 'image/png' }));
    const partner = await rawAgent(t, () => ({ task: task('COMPLETED', { artifacts: [{ artifactId: 'a', parts }] }) }));
    const app = await open(remoteSetup(partner.cardUrl));
    const { output } = await runJson(app.client, 'boss', { message: 'ask this', sessionId: 's1' });
    assert.match(output ?? '', /\[68 more files were left out: a result may have 32\]/);
    const { body } = await app.client.attachments.list({ query: { sessionId: 's1', take: 100 } });
    assert.equal(body.length, 32);
  },
);

forEachServiceInFile('GUARD-5 what a remote agent answers is inspected as of its own source', async (open, t) => {
  let text = 'fine';
  const partner = await rawAgent(t, () => ({
    task: task('COMPLETED', { artifacts: [{ artifactId: 'a', parts: [{ text }] }] }),
  }));
  const recorder = recordingGuard(({ source, text: seen }) => {
    if (source !== 'RemoteTool' || !/mail@of.me|lure/.test(seen)) return { decision: 'Allow' };
    if (seen.includes('lure')) return { decision: 'Block', rule: 'lure' };
    return { decision: 'Mask', text: seen.replaceAll('mail@of.me', '***'), rules: ['mail'] };
  });
  const app = await open(remoteSetup(partner.cardUrl, {}, { module: { guards: [recorder.guard] } }));
  text = 'write to mail@of.me';
  const masked = await runJson(app.client, 'boss', 'ask this');
  assert.equal(masked.output, 'write to ***');
  const child = await childOf(app, masked.runId);
  const events = await followToEnd(app.client, child?.id ?? '');
  assert.deepEqual(findings(events), [['content.masked', 'RemoteTool', 'recorder', 'mail']]);
  const remote = recorder.seen.filter(({ source }) => source === 'RemoteTool');
  assert.ok(remote.length > 0 && remote.every(({ toolSource }) => toolSource === 'partner'));
  assert.ok(!(await app.store.text()).includes('mail@of.me'));
  text = 'a lure';
  const { output, runId } = await runJson(app.client, 'boss', 'ask this');
  assert.equal(output, 'Agent "partner" failed.');
  assert.equal((await childOf(app, runId))?.error?.class, 'ContentBlocked');
  assert.ok(!(await app.store.text()).includes('a lure'));
});
