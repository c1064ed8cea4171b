import assert from 'node:assert/strict';
import type { Client } from '../../src/client/client.ts';
import { entryHash } from '../../src/features/audit/chain.rules.ts';

export interface TrailEntry {
  readonly actor: string | null;
  readonly action: string;
  readonly entity: string;
  // biome-ignore lint/suspicious/noExplicitAny: an entity of any feature; tests look at the members they mean.
  readonly before: any;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  readonly after: any;
}

// As many as one answer has.
const limit = 500;

/** The entries of the caller's tenant, oldest first, after their whole chain was checked, here and by the service. */
export const trail = async ({ client }: { readonly client: Client }): Promise<TrailEntry[]> => {
  const entries = (await client.audit.list({ query: { limit } })).body.toReversed();
  assert.ok(entries.length < limit, 'these are all entries');
  let previous: (typeof entries)[number] | undefined;
  for (const { hash, ...fields } of entries) {
    assert.equal(fields.previousHash, previous?.hash ?? null, 'every entry names the hash of the one before');
    assert.equal(hash, entryHash(fields), 'the hash is that of the content');
    assert.ok(fields.createdAt >= (previous?.createdAt ?? ''), 'time does not run backwards');
    previous = { ...fields, hash };
  }
  const { body: verified } = await client.audit.verify({ query: {} });
  assert.deepEqual([verified.status, verified.entriesChecked], ['Valid', entries.length]);
  const parsed = (text: string | null): unknown => (text === null ? null : JSON.parse(text));
  return entries.map(({ actor, action, entity, before, after }) => ({
    actor,
    action,
    entity,
    before: parsed(before),
    after: parsed(after),
  }));
};
