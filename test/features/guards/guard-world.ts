import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ContentGuard, GuardInput, GuardVerdict } from '../../../src/engine/control/guards/content-guard.ts';
import type { TestApp } from '../../support/app.ts';
import { trail } from '../../support/audit-chain.ts';
import type { SimulatedToolCall } from '../../support/providers/scenario.ts';
import type { LoggedEvent } from '../runs/run-calls.ts';

export const local = { provider: 'local', model: 'any' };
/** What the guard of most tests blocks. */
export const secret = 'Project Zeus';
export const mail = 'jo@example.com';
export const pattern = { DeniedTerms: [secret], MaskedPii: 'All' };

export const says = (...text: string[]) => ({ answer: { text } });
export const asksFor = (...toolCalls: SimulatedToolCall[]) => ({ answer: { toolCalls } });
export const call = (name: string, args: unknown = {}, id = 'c1'): SimulatedToolCall => ({
  id,
  name,
  arguments: typeof args === 'string' ? args : JSON.stringify(args),
});

/** Every table of the store, and what the service has logged, have no such text in any case. */
export const assertNowhere = async (app: TestApp, text: string): Promise<void> => {
  const wanted = text.toLowerCase();
  assert.ok(!(await app.store.text()).toLowerCase().includes(wanted), `the store has the text ${wanted}`);
  for (const line of app.log) {
    const fields = Object.values(line.fields).map((value) =>
      value instanceof Error ? `${value.stack} ${String(value.cause)}` : JSON.stringify(value),
    );
    assert.ok(!`${line.message} ${fields.join(' ')}`.toLowerCase().includes(wanted), `the log has the text: ${fields}`);
  }
};

/** Nothing of the file itself either, pages that are free again included. */
export const storeFile = (app: TestApp): string =>
  ['acp.db', 'acp.db-wal'].map((name) => readFileSync(join(app.folder, 'data', name), 'latin1')).join('');

export const ofType = (events: readonly LoggedEvent[], type: string) => events.filter((event) => event.type === type);

/** Source, guard and rule of the events about content. */
export const findings = (events: readonly LoggedEvent[]) =>
  events.flatMap((event) =>
    event.type.startsWith('content.') ? [[event.type, event['source'], event['guardName'], event['ruleName']]] : [],
  );

export const audited = async (app: TestApp): Promise<[string, unknown][]> =>
  (await trail(app)).flatMap(({ action, entity, after }) => (action === 'content.blocked' ? [[entity, after]] : []));

/** What the model was sent in its last call. */
export const sent = (app: TestApp): string => JSON.stringify(app.simulator.lastRequest().body['messages']);

/** A guard of a module that keeps what it was given. */
export const recordingGuard = (
  verdict: (input: GuardInput) => GuardVerdict = () => ({ decision: 'Allow' }),
  name = 'recorder',
): { readonly guard: ContentGuard; readonly seen: GuardInput[] } => {
  const seen: GuardInput[] = [];
  const inspect = async (input: GuardInput): Promise<GuardVerdict> => {
    seen.push(input);
    return verdict(input);
  };
  return { guard: { name, inspect }, seen };
};

export const texts = (seen: readonly GuardInput[]) => seen.map(({ source, text }) => [source, text]);
