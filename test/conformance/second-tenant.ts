import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { environment } from '../../src/core/environment.ts';
import type { Answer, Body } from './api.ts';
import { messageSlots } from './message-slots.ts';
import { operationSlots, type Slot } from './second-tenant.slots.ts';
import type { Target } from './server.ts';
import {
  allScopes,
  comparable,
  createSelection,
  type Found,
  idsIn,
  inAnyOrder,
  type Shown,
  uuid,
} from './shown-ids.ts';

/**
 * SEC-25 for the whole suite: a second tenant tries ids that answers show to the first, the first ones of each kind from
 * each place, on every operation that takes such an id, at the moment they are shown. Its answer must be the one that it
 * gets for an id that does not exist.
 */
const reportFile = environment()['ACP_CONFORMANCE_SECOND_TENANT'] ?? '';
const isWatching = reportFile !== '';

export type Send = (
  method: string,
  path: string,
  token: string,
  body?: unknown,
  more?: { readonly headers?: Readonly<Record<string, string>>; readonly raw?: string },
) => Promise<Answer>;

/** The request of an answer. */
export interface Watched extends Shown {
  readonly headers: Readonly<Record<string, string>>;
}

/** Asked by the client of the suite for each answer that it has read. */
export interface Watcher {
  watch(request: Watched, answer: Answer): Promise<void>;
}

/** An id that nobody has, in the form of its kind. */
const unknownId = (kind: string): string => {
  if (kind === 'entities') return `agent:x${randomUUID()}`;
  return kind === 'mcp-servers' ? `x${randomUUID().slice(0, 8)}` : randomUUID();
};

const tenant = `watcher-${randomUUID().slice(0, 8)}`;
const parallel = 8;
/** Where the rules ask for 400 and not 404 (AUDIT-4), or nothing can be saved: no server has secrets of the second tenant. */
const unknownIsBadInput = new Set(['audit.list query:beforeId', 'triggers.save path:name', 'webhooks.save path:name']);

/** Null where this server has no tenants. */
const createWatcher = async (target: Target, send: Send): Promise<Watcher | null> => {
  const made = await fetch(`${target.url}/api/api-keys`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${target.token}`,
      'content-type': 'application/json',
      'x-service-tenant': tenant,
    },
    body: JSON.stringify({ name: 'watcher', role: 'Admin', scopes: allScopes }),
  });
  const { record, plaintextKey: key } = (await made.json()) as Body;
  if (made.status !== 200 || record.tenantId !== tenant) return null;
  const agent = { name: `own-${tenant}`, model: { provider: 'demo', model: 'demo-1' } };
  assert.equal((await send('POST', '/api/agents', key, agent)).status, 201);
  const run = await send('POST', `/api/agents/${agent.name}/run`, key, { message: 'Mine', stream: false });
  const ownRun = run.headers.get('x-run-id') ?? assert.fail(run.text);
  const document = await send('GET', '/openapi.json', key);
  // A server that limits its callers is not for one that asks for everything.
  if (document.status === 429) return null;
  const { slots: operations, kinds, unjudged } = operationSlots(document.body, ownRun);
  const slots = [...operations, ...messageSlots];
  // What the host gives to all tenants is nobody's.
  const shared = new Set<string>([tenant]);
  for (const kind of ['agents', 'skills'])
    for (const { name } of (await send('GET', `/api/${kind}`, key)).body) shared.add(`${kind} ${name}`);

  const tried = new Set<string>();
  const isSelected = createSelection();
  const attempted = new Set<string>();
  const baselines = new Map<string, Promise<string>>();
  let attempts = 0;

  const ask = async (slot: Slot, id: string, runId: string | null): Promise<string> => {
    const { path, body, headers } = slot.request(id, runId);
    const more = headers === undefined ? {} : { headers };
    return comparable(await send(slot.method, path, key, body, more), [
      id,
      encodeURIComponent(id),
      ...(runId === null ? [] : [runId]),
    ]);
  };
  const baselineOf = (slot: Slot): Promise<string> => {
    let baseline = baselines.get(slot.name);
    if (baseline === undefined) {
      const id = unknownId(slot.kind);
      baseline = ask(slot, id, randomUUID());
      baselines.set(slot.name, baseline);
    }
    return baseline;
  };
  const attempt = async (slot: Slot, { id, runId }: Found): Promise<void> => {
    const unknown = await baselineOf(slot);
    // Switched off on this server, or limited: nothing can be found.
    if (/^(?:501|429)/.test(unknown)) return;
    assert.ok(!unknown.startsWith('5'), `${slot.name} fails for an unknown id: ${unknown}`);
    assert.ok(!unknown.startsWith('401'), `${slot.name} does not know the watcher: ${unknown}`);
    // Not offered on this server.
    if (slot.isMessage === true && !unknown.includes('"jsonrpc"')) return;
    // Nothing to be found there: it creates what it does not find.
    if (slot.method !== 'GET' && slot.isMessage !== true && unknown.startsWith('2')) return;
    if (unknown.startsWith('400') && slot.isMessage !== true && !unknownIsBadInput.has(slot.name)) {
      unjudged.add(slot.name);
      return;
    }
    if (slot.isMessage === true) assert.match(unknown, /"code":-32\d{3}\b/, `${slot.name} finds what does not exist`);
    const answer = await ask(slot, id, runId);
    // Of the host, and so the same for everybody.
    if (/"code":"[a-z]+-code-defined"/.test(answer) || answer.startsWith('429')) return;
    attempts += 1;
    attempted.add(slot.name);
    assert.equal(answer, unknown, `SEC-25 ${slot.name}: another tenant's id is not answered as an unknown one`);
  };

  process.on('exit', () => {
    const report = { ids: tried.size, attempts, operations: [...attempted], unjudged: [...unjudged] };
    appendFileSync(reportFile, `${JSON.stringify(report)}\n`);
  });

  return {
    async watch(request, answer) {
      const header = answer.headers.get('x-run-id');
      const found = [
        ...(answer.status < 300 && answer.body !== undefined ? idsIn(request.path, answer.body, kinds) : []),
        ...(header === null ? [] : [{ kind: 'runs', id: header, runId: null }]),
      ].filter(({ kind, id }) => {
        const name = `${kind} ${id}`;
        if (tried.has(name) || shared.has(name) || !kinds.includes(kind)) return false;
        if (!isSelected(kind, request, answer.status)) return false;
        tried.add(name);
        return true;
      });
      const work = inAnyOrder(
        found.flatMap((one) =>
          slots
            .filter(({ kind, isUuid }) => kind === one.kind && (!isUuid || uuid.test(one.id)))
            .map((slot) => ({ slot, one })),
        ),
      );
      for (let at = 0; at < work.length; at += parallel)
        await Promise.all(work.slice(at, at + parallel).map(({ slot, one }) => attempt(slot, one)));
    },
  };
};

// By the server and not its address, which the next one may be given.
const watchers = new WeakMap<Target, Promise<Watcher | null>>();

/** The second tenant of a server; null when nobody watches it. */
export const secondTenantOf = (target: Target, send: Send): Promise<Watcher | null> => {
  if (!isWatching) return Promise.resolve(null);
  let watcher = watchers.get(target);
  if (watcher === undefined) {
    watcher = createWatcher(target, send);
    watchers.set(target, watcher);
  }
  return watcher;
};
