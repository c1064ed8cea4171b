import assert from 'node:assert/strict';
import { newId } from '../../../src/core/ids.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import { noTelemetry } from '../../../src/core/telemetry/telemetry.ts';
import type { SessionRow } from '../../../src/db/tables/sessions.ts';
import { auditReadingStore } from '../../../src/features/audit/audit-reading.store.ts';
import { createAuditLog } from '../../../src/features/audit/index.ts';
import { dataSubjectOperations } from '../../../src/features/data-subjects/data-subjects.operations.ts';
import { dataSubjectsFeature } from '../../../src/features/data-subjects/index.ts';
import { sessionStore } from '../../../src/features/sessions/index.ts';
import { sessionBranchStore } from '../../../src/features/sessions/session-branches.store.ts';
import { forEachStore, openTestStorage } from '../../support/store.ts';

const session = (id: string): SessionRow => ({
  tenant_id: 'default',
  id,
  agent_name: 'helper',
  owner_id: 'user:ada',
  conversation_id: `c-${id}`,
  version: 1,
  message_count: 0,
  active_run_id: null,
  lock_until: null,
  last_run_id: null,
  created_at: 1,
  updated_at: 1,
  parent_session_id: null,
  door: null,
  parent_conversation_id: null,
  branch_from_sequence: null,
  summary: null,
});

forEachStore('SUBJ-6 SUBJ-8 a session that comes while its person is erased keeps all of them', async (t, store) => {
  const storage = await openTestStorage(t, store);
  const sessions = storage.stores(sessionStore);
  const add = (id: string) => storage.write([sessions.open(session(id))]);
  const log = silentLogger;
  let comes: string | null = 'second';
  const { handlers } = dataSubjectsFeature({
    storage,
    telemetry: noTelemetry(),
    log,
    audit: createAuditLog({ storage, telemetry: noTelemetry(), log, now: Date.now, newId }),
    resolver: { resolve: async () => ({ userIds: [], sessionIds: [], ownerIds: ['user:ada'] }) },
    async eraseSessions(rows) {
      if (comes !== null) await add(comes);
      comes = null;
      return {
        async remove(stores) {
          for (const row of rows) await stores(sessionBranchStore).remove(row, Date.now(), newId());
        },
        done: async () => undefined,
      };
    },
    assertReleasable: () => undefined,
    releaseBytes: async () => undefined,
    messagesOf: async () => [],
    now: Date.now,
  });
  await add('first');
  const erase = async () => {
    const { audit } = dataSubjectOperations.erase;
    const context = { tenantId: 'default', principal: { actor: null }, audit, signal: new AbortController().signal };
    const input = { params: { id: 'ada' }, query: { dryRun: false } };
    const { erase: handler } = handlers;
    return handler(context as Parameters<typeof handler>[0], input as Parameters<typeof handler>[1]);
  };
  const left = async () => (await sessions.list('default', { ownerId: null, skip: 0, take: 9 })).length;
  await assert.rejects(erase(), { code: 'data-subject-active' });
  assert.equal(await left(), 2);
  const everything = { fromId: null, toId: null };
  assert.deepEqual(await storage.stores(auditReadingStore).page('default', everything, null, 9), []);
  await erase();
  assert.equal(await left(), 0);
});
