import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { environment } from '../../src/core/environment.ts';
import type { Answer } from './api.ts';
import { listings, otherSlots, ownedKinds, refusals } from './second-owner.slots.ts';
import { operationSlots, type Slot } from './second-tenant.slots.ts';
import type { Send, Watcher } from './second-tenant.ts';
import type { Target } from './server.ts';
import { allScopes, comparable, createSelection, type Found, idsIn, inAnyOrder, uuid } from './shown-ids.ts';

/**
 * SESS-25 and SESS-28 for the whole suite, on a server whose sessions have owners: another caller of the same tenant, who is
 * no manager, tries ids of runs and of what belongs to one, the first ones of each kind from each place, on every operation
 * that takes such an id, and looks for them in every list.
 */
const reportFile = environment()['ACP_CONFORMANCE_SECOND_OWNER'] ?? '';
const parallel = 8;

/** Null where sessions have no owners. */
const createWatcher = async (target: Target, send: Send): Promise<Watcher | null> => {
  const name = `owner-${randomUUID().slice(0, 8)}`;
  const made = await send('POST', '/api/api-keys', target.token, { name, role: 'Operator', scopes: allScopes });
  if (made.status !== 200) return null;
  const key: string = made.body.plaintextKey;
  const agent = { name, model: { provider: 'demo', model: 'demo-1' } };
  assert.equal((await send('POST', '/api/agents', target.token, agent)).status, 201);
  const turn = { message: 'Mine', stream: false, sessionId: name };
  const run = await send('POST', `/api/agents/${name}/run`, key, turn);
  const ownRun = run.headers.get('x-run-id') ?? assert.fail(run.text);
  const session = await send('GET', `/api/sessions/${name}`, key);
  if (session.body?.ownerId === null) return null;
  const document = await send('GET', '/openapi.json', key);
  // A server that limits its callers is not for one that asks for everything.
  if (document.status === 429) return null;
  const { slots: inPaths, kinds, unjudged } = operationSlots(document.body, ownRun);
  const others = otherSlots(document.body, { name, sessionId: name, runId: ownRun });
  // The job of a queued run has the run's id.
  const slots = [...inPaths.map((slot) => (slot.kind === 'jobs' ? { ...slot, kind: 'runs' } : slot)), ...others].filter(
    ({ kind }) => ownedKinds.has(kind),
  );
  unjudged.clear();
  const lists = listings(document.body);
  const tried = new Set<string>([`runs ${ownRun}`, `sessions ${name}`]);
  const isSelected = createSelection();
  const attempted = new Set<string>();
  const baselines = new Map<string, Promise<string>>();
  let attempts = 0;

  const ask = async (slot: Slot, id: string, runId: string | null): Promise<Answer> => {
    const { path, body, ...more } = slot.request(id, runId);
    return send(slot.method, path, key, body, more);
  };
  const compared = async (slot: Slot, id: string, runId: string | null): Promise<string> =>
    comparable(await ask(slot, id, runId), [id, ...(runId === null ? [] : [runId])]);
  const baselineOf = (slot: Slot): Promise<string> => {
    let baseline = baselines.get(slot.name);
    if (baseline === undefined) {
      baseline = compared(slot, randomUUID(), randomUUID());
      baselines.set(slot.name, baseline);
    }
    return baseline;
  };
  const attempt = async (slot: Slot, { id, runId }: Found): Promise<void> => {
    const refusal = refusals[slot.name];
    if (refusal !== undefined) {
      // An id that is not in use, or not any more, is free for everybody.
      const { status, body } = await send('GET', `/api/sessions/${encodeURIComponent(id)}`, target.token);
      if (status !== 200 || body.version === 0) return;
      const answer = await ask(slot, id, runId);
      attempts += 1;
      attempted.add(slot.name);
      assert.deepEqual([answer.status, answer.body?.code], refusal, `SESS-25 ${slot.name}: ${answer.text}`);
      return;
    }
    const unknown = await baselineOf(slot);
    // Switched off on this server, or limited: nothing can be found.
    if (/^(?:501|429)/.test(unknown)) return;
    assert.ok(!unknown.startsWith('5'), `${slot.name} fails for an unknown id: ${unknown}`);
    assert.ok(!unknown.startsWith('401'), `${slot.name} does not know the watcher: ${unknown}`);
    if (unknown.startsWith('400') && !slot.name.includes('body:')) {
      unjudged.add(slot.name);
      return;
    }
    const answer = await compared(slot, id, runId);
    if (answer.startsWith('429')) return;
    attempts += 1;
    attempted.add(slot.name);
    assert.equal(answer, unknown, `SESS-28 ${slot.name}: another owner's id is not answered as an unknown one`);
  };
  const look = async (list: (typeof lists)[number], found: readonly Found[]): Promise<void> => {
    const answer = await send(list.method, list.path, key, list.body);
    // Switched off, or refused as a whole.
    if ([501, 429, 403].includes(answer.status)) return;
    assert.equal(answer.status, 200, `${list.name}: ${answer.text}`);
    attempts += found.length;
    attempted.add(list.name);
    for (const { id } of found)
      assert.ok(!answer.text.includes(JSON.stringify(id)), `SESS-28 ${list.name} shows another owner's ${id}`);
  };

  process.on('exit', () => {
    const report = { ids: tried.size, attempts, operations: [...attempted], unjudged: [...unjudged] };
    appendFileSync(reportFile, `${JSON.stringify(report)}\n`);
  });

  return {
    async watch(request, answer) {
      const runId = answer.headers.get('x-run-id');
      const keySent = Object.entries(request.headers).find(
        ([header]) => header.toLowerCase() === 'idempotency-key',
      )?.[1];
      const found = [
        ...(answer.status < 300 && answer.body !== undefined ? idsIn(request.path, answer.body, kinds) : []),
        ...(runId === null ? [] : [{ kind: 'runs', id: runId, runId: null }]),
        ...(keySent === undefined || answer.status >= 300 ? [] : [{ kind: 'keys', id: keySent, runId: null }]),
      ].filter(({ kind, id }) => {
        if (!ownedKinds.has(kind) || tried.has(`${kind} ${id}`)) return false;
        if (!isSelected(kind, request, answer.status)) return false;
        tried.add(`${kind} ${id}`);
        return true;
      });
      const work = inAnyOrder(
        found.flatMap((one) =>
          slots
            .filter(({ kind, isUuid }) => kind === one.kind && (!isUuid || uuid.test(one.id)))
            .map((slot) => ({ slot, one })),
        ),
      );
      // Two requests of one caller under one key are refused while either is in progress, whoever else has the key.
      const isKeyed = ({ kind }: Found): boolean => kind === 'keys';
      for (const { slot, one } of work) if (isKeyed(one)) await attempt(slot, one);
      const rest = work.filter(({ one }) => !isKeyed(one));
      for (let at = 0; at < rest.length; at += parallel)
        await Promise.all(rest.slice(at, at + parallel).map(({ slot, one }) => attempt(slot, one)));
      const shown = found.filter((one) => !isKeyed(one));
      if (shown.length > 0) await Promise.all(lists.map((list) => look(list, shown)));
    },
  };
};

// By the server and not its address, which the next one may be given.
const watchers = new WeakMap<Target, Promise<Watcher | null>>();

/** The second owner of a server; null when nobody watches it. */
export const secondOwnerOf = (target: Target, send: Send): Promise<Watcher | null> => {
  if (reportFile === '' || target.hasSecondOwner === false) return Promise.resolve(null);
  let watcher = watchers.get(target);
  if (watcher === undefined) {
    watcher = createWatcher(target, send);
    watchers.set(target, watcher);
  }
  return watcher;
};
