import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { apiKeyScopes } from '../../src/contract/authority.ts';
import type { Answer, Body } from '../conformance/api.ts';
import { operationSlots, type Slot } from '../conformance/second-tenant.slots.ts';
import { comparable } from '../conformance/shown-ids.ts';
import { forEachDurableHttpService } from '../support/app.ts';
import { ownedThings, sharedName } from './owned-things.ts';

const token = 'shared-token-of-the-owner';

/** Bodies that the other tenant may send; the smallest one of the schema is refused before anything is looked up. */
const bodies: Readonly<Record<string, unknown>> = {
  'webhooks.save': {
    url: 'http://127.0.0.1:9/',
    events: ['webhook.test'],
    secretConfigurationKey: 'Service:WebhookSecrets:other:own',
  },
  'triggers.save': { targetName: sharedName, secretConfigurationKey: 'Service:TriggerSecrets:other:own' },
  'agents.rollback': { version: 1 },
};

/** They answer the same to every tenant, or what has changed by the call itself. */
const notLists =
  /^(?:meta|tenants|models|platform|diagnostics|keys\.whoami|statistics|tools|exposure|audit\.export|emergency|retention\.preview)/;
const listsOf = (document: Body): readonly string[] =>
  Object.entries<Body>(document.paths).flatMap(([path, { get }]) => {
    const isPlain = !path.includes('{') && !(get?.parameters ?? []).some((one: Body) => one.required === true);
    return get === undefined || !isPlain || notLists.test(get.operationId) || !path.startsWith('/api/') ? [] : [path];
  });

/** What they answer has the time of the call in it. */
const timed: ReadonlySet<string> = new Set(['replays.bundle', 'dataSubjects.export']);

const bodySlot = (name: string, kind: string, path: string, body: (id: string) => unknown): Slot => ({
  name,
  method: 'POST',
  kind,
  isUuid: false,
  request: (id) => ({ path, body: body(id) }),
});
const run = `/api/agents/${sharedName}/run`;
/** Ids in bodies, which the API description does not tell from other texts. */
const bodySlots: readonly Slot[] = [
  bodySlot('runs.start body:sessionId', 'sessions', run, (sessionId) => ({ message: 'Hi', stream: false, sessionId })),
  bodySlot('runs.start body:attachments', 'attachments', run, (id) => ({
    message: 'Hi',
    stream: false,
    attachmentIds: [id],
  })),
  bodySlot('responses.create body:previous_response_id', 'responses', '/v1/responses', (id) => ({
    model: sharedName,
    input: 'Hi',
    previous_response_id: id,
  })),
  bodySlot('responses.create body:conversation', 'conversations', '/v1/responses', (conversation) => ({
    model: sharedName,
    input: 'Hi',
    conversation,
  })),
  bodySlot('chatCompletions.create body:model', 'agents', '/v1/chat/completions', (model) => ({
    model,
    messages: [{ role: 'user', content: 'Hi' }],
  })),
  bodySlot('grants.create body:skillName', 'skills', '/api/skill-script-grants', (skillName) => ({ skillName })),
  bodySlot('emergency.stop body:agentName', 'agents', '/api/emergency/stop', (agentName) => ({
    scope: 'Agent',
    agentName,
  })),
];

/** Without what differs between two things that calls have just made: their ids, and how long it took. */
const withoutMade = (text: string): string =>
  /^20[01] /.test(text)
    ? text.replace(/(?:resp_|msg_)?[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}|(?<="\w+(?:Ms|_at)":)\d+/g, '<made>')
    : text;

const unknownOf = (kind: string): string => {
  if (kind === 'entities') return `agent:x${randomUUID()}`;
  return kind === 'mcp-servers' ? `x${randomUUID().slice(0, 8)}` : randomUUID();
};

/** Reads come first, and what makes the other tenant a thing of that name comes last. */
const rank = (slot: Slot): number =>
  /^(?:runs\.start|responses\.create) body:/.test(slot.name)
    ? 4
    : ['GET', 'POST', 'DELETE', 'PUT'].indexOf(slot.method);

const read = async (url: string, slot: Pick<Slot, 'method'>, request: ReturnType<Slot['request']>, key: string) => {
  const response = await fetch(url + request.path, {
    method: slot.method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(request.body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(request.body === undefined ? {} : { body: JSON.stringify(request.body) }),
    signal: AbortSignal.timeout(20_000),
  });
  const answer: Answer = {
    status: response.status,
    headers: response.headers,
    body: undefined,
    text: await response.text(),
  };
  return answer;
};

forEachDurableHttpService(
  'SEC-25 another tenant finds an id of the owner nowhere and changes nothing',
  async (open, t) => {
    const { app, ids, runId } = await ownedThings(open, t, token);
    const other = app.inTenant('other');
    await other.agents.create({ body: { name: sharedName, model: { provider: 'demo', model: 'demo-1' } } });
    const own = await other.runs.start({ params: { name: sharedName }, body: { message: 'Mine', stream: false } });
    const { plaintextKey } = (
      await other.keys.create({ body: { name: 'other', role: 'Admin', scopes: [...apiKeyScopes] } })
    ).body;
    const described = await fetch(`${app.url}/openapi.json`, { headers: { authorization: `Bearer ${token}` } });
    const document = (await described.json()) as Body;
    const { slots, kinds, unjudged } = operationSlots(document, String(own.headers['x-run-id']));
    assert.deepEqual([...unjudged], []);
    assert.deepEqual(
      Object.keys(ids).sort(),
      [...kinds].sort(),
      'the owner has a thing of every kind that a slot takes',
    );

    const lists = listsOf(document);
    const requestOf = (slot: Slot, id: string, ofRun: string | null) => {
      const request = slot.request(id, ofRun);
      const body = bodies[slot.name.split(' ')[0] ?? ''];
      return body === undefined ? request : { ...request, body };
    };
    const views = slots.filter(({ method, name }) => method === 'GET' && !timed.has(name.split(' ')[0] ?? ''));
    const seenByOwner = async () => {
      const seen: [string, string, string][] = [];
      for (const slot of views)
        for (const id of ids[slot.kind] ?? []) {
          const { status, text } = await read(app.url, slot, slot.request(id, runId), token);
          if (status === 200) seen.push([slot.name, id, text]);
        }
      for (const path of lists) {
        const { status, text } = await read(app.url, { method: 'GET' }, { path, body: undefined }, token);
        if (status === 200) seen.push([path, '', text]);
      }
      return seen;
    };
    const before = await seenByOwner();
    for (const slot of [...slots, ...bodySlots].sort((left, right) => rank(left) - rank(right)))
      await t.test(slot.name, async () => {
        const unknownId = unknownOf(slot.kind);
        const unknownRun = randomUUID();
        const missing = await read(app.url, slot, requestOf(slot, unknownId, unknownRun), plaintextKey);
        const expected = withoutMade(comparable(missing, [unknownId, unknownRun]));
        if (slot.method === 'PUT' && slot.name !== 'agents.save path:name')
          assert.match(expected, /^20[01] /, 'a free name is made');
        for (const id of ids[slot.kind] ?? []) {
          const found = await read(app.url, slot, requestOf(slot, id, runId), plaintextKey);
          assert.equal(withoutMade(comparable(found, [id, runId])), expected);
        }
      });
    for (const path of lists)
      await t.test(`${path} shows nothing of the owner`, async () => {
        const { text } = await read(app.url, { method: 'GET' }, { path, body: undefined }, plaintextKey);
        for (const id of Object.values(ids).flat())
          if (id.length === 36) assert.ok(!text.includes(id), `${path} has ${id}`);
      });
    await t.test('what the other tenant makes is not of the owner', async () => {
      const file = {
        name: 'a.txt',
        bytes: (async function* () {
          yield Buffer.from('Mine');
        })(),
      };
      await other.attachments.upload({ query: { sessionId: 'theirs' }, file });
      await other.quotas.save({ body: { period: 'Daily', maxRuns: 5 } });
      await other.approvalRules.create({ body: { toolName: 'wipe' } });
      const params = { target: 'Jobs' } as const;
      await assert.rejects(other.retention.get({ params }), { code: 'retention-policy-not-found' });
      await assert.rejects(other.retention.remove({ params }));
      await other.retention.save({ params, body: { maxAgeDays: 5 } });
      await other.retention.remove({ params });
      const after = await seenByOwner();
      assert.equal(after.length, before.length);
      for (const [index, [what, id, text]] of after.entries()) assert.equal(text, before[index]?.[2], `${what} ${id}`);
    });
  },
);
