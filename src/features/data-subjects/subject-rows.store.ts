import { type Kysely, type RawBuilder, sql } from 'kysely';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import type { SqlDialect } from '../../db/dialect.ts';
import type { OpenAiConversationRow } from '../../db/tables/openai.ts';
import { erasedRunsMark } from '../../db/tables/retention.ts';
import type { SessionRow } from '../../db/tables/sessions.ts';
import type { AttachmentRow, RunRow, Tables } from '../../db/tables.ts';
import { chunks } from './chunks.ts';
import type { SubjectIdentity } from './data-subject-resolver.ts';
import { type SubjectTarget, subjectTargets } from './data-subjects.schema.ts';
import { deleteSpans, findWaitingSpans, type WaitingSpanKey, waitingSpanRows } from './subject-spans.store.ts';

/** Everything of one person that other rows hang on. */
export interface SubjectScope {
  readonly tenantId: string;
  readonly sessions: readonly SessionRow[];
  /** Conversations of the OpenAI API that the person has reserved, or given metadata. */
  readonly conversations: readonly OpenAiConversationRow[];
  readonly runs: readonly RunRow[];
  readonly attachments: readonly AttachmentRow[];
  /** Spans of agents elsewhere that are no run yet. */
  readonly waitingSpans: readonly WaitingSpanKey[];
  /** Owners of agent files: `session:{id}` and `run:{id}`. */
  readonly fileOwners: readonly string[];
  readonly identity: SubjectIdentity;
}

type Db = Kysely<Tables>;

const inChunks = async <K, T>(keys: readonly K[], read: (chunk: K[]) => Promise<readonly T[]>): Promise<T[]> => {
  const rows: T[] = [];
  for (const chunk of chunks(keys)) rows.push(...(await read(chunk)));
  return rows;
};

const unique = <T>(rows: readonly T[], key: (row: T) => string): T[] => [
  ...new Map(rows.map((row) => [key(row), row])).values(),
];

const runsBelow = async (db: Db, roots: readonly RunRow[]): Promise<RunRow[]> => {
  const below: RunRow[] = [];
  for (let level = roots.map(({ id }) => id); level.length > 0; ) {
    const next = await inChunks(level, (ids) =>
      db.selectFrom('runs').selectAll().where('parent_run_id', 'in', ids).execute(),
    );
    below.push(...next);
    level = next.map(({ id }) => id);
  }
  return below;
};

const findSubject = async (db: Db, tenantId: string, identity: SubjectIdentity): Promise<SubjectScope> => {
  const of = <T extends 'sessions' | 'runs' | 'attachments' | 'openai_conversations'>(
    table: T,
    column: string,
    keys: readonly string[],
  ) =>
    inChunks(
      keys,
      (chunk) =>
        db
          .selectFrom(table as 'runs')
          .selectAll()
          .where('tenant_id', '=', tenantId)
          .where(column as 'id', 'in', chunk)
          .execute() as unknown as Promise<Tables[T][]>,
    );
  const { userIds, sessionIds, ownerIds } = identity;
  const sessions = unique(
    [...(await of('sessions', 'id', sessionIds)), ...(await of('sessions', 'owner_id', ownerIds))],
    ({ id }) => id,
  );
  const everySession = [...new Set([...sessionIds, ...sessions.map(({ id }) => id)])];
  const conversations = unique(
    [
      ...(await of('openai_conversations', 'id', everySession)),
      ...(await of('openai_conversations', 'owner_id', ownerIds)),
    ],
    ({ id }) => id,
  );
  const own = unique(
    [
      ...(await of('runs', 'user_id', userIds)),
      ...(await of('runs', 'owner_id', ownerIds)),
      ...(await of('runs', 'session_id', everySession)),
    ],
    ({ id }) => id,
  );
  const runs = unique([...own, ...(await runsBelow(db, own))], ({ id }) => id);
  const attachments = unique(
    [
      ...(await of('attachments', 'user_id', userIds)),
      ...(await of('attachments', 'owner_id', ownerIds)),
      ...(await of('attachments', 'session_id', everySession)),
      ...(await of(
        'attachments',
        'run_id',
        runs.map(({ id }) => id),
      )),
    ],
    ({ id }) => id,
  );
  const fileOwners = [...everySession.map((id) => `session:${id}`), ...runs.map(({ id }) => `run:${id}`)];
  const waitingSpans = await findWaitingSpans(db, tenantId, identity);
  return { tenantId, sessions, conversations, runs, attachments, waitingSpans, fileOwners, identity };
};

export type HangingTarget =
  | 'responses'
  | 'runInputs'
  | 'runEvents'
  | 'toolInvocations'
  | 'spans'
  | 'runScores'
  | 'approvals';
/** Where the rows of a target are. */
const subjectTables = {
  responses: 'openai_responses',
  runInputs: 'run_inputs',
  runEvents: 'run_events',
  toolInvocations: 'tool_invocations',
  spans: 'run_traces',
  runScores: 'run_scores',
  approvals: 'approvals',
} as const satisfies Record<HangingTarget, keyof Tables>;

/** Whether the rows of a target hang on runs by their ids. */
export const hangsOnRuns = (target: SubjectTarget): target is HangingTarget => Object.hasOwn(subjectTables, target);

// How many rows a stored row is, where it packs several.
const weights: Partial<Record<HangingTarget, RawBuilder<number>>> = {
  runEvents: sql<number>`last_sequence - first_sequence + 1`,
  spans: sql<number>`span_count`,
};

const rowsOfRuns = (db: Db, target: HangingTarget, runIds: readonly string[]): Promise<readonly object[]> =>
  db
    .selectFrom(subjectTables[target] as 'run_inputs')
    .selectAll()
    .where('run_id', 'in', runIds)
    .$if(target === 'runEvents', (query) => query.orderBy('run_id').orderBy('first_sequence' as 'run_id'))
    .execute();

const filesOf = (db: Db, tenantId: string, owners: readonly string[]): Promise<readonly object[]> =>
  db.selectFrom('agent_files').selectAll().where('tenant_id', '=', tenantId).where('owner', 'in', owners).execute();

const sum = (rows: readonly { readonly total: unknown }[]): number =>
  rows.reduce((total, row) => total + Number(row.total ?? 0), 0);

const countSubject = async (db: Db, scope: SubjectScope): Promise<Record<SubjectTarget, number>> => {
  const runIds = scope.runs.map(({ id }) => id);
  const ofRuns = async (target: HangingTarget): Promise<number> =>
    sum(
      await inChunks(runIds, (ids) =>
        db
          .selectFrom(subjectTables[target] as 'run_inputs')
          .select(sql<number>`coalesce(sum(${weights[target] ?? sql<number>`1`}), 0)`.as('total'))
          .where('run_id', 'in', ids)
          .execute(),
      ),
    );
  const files = await inChunks(scope.fileOwners, (owners) =>
    db
      .selectFrom('agent_files')
      .select(sql<number>`count(*)`.as('total'))
      .where('tenant_id', '=', scope.tenantId)
      .where('owner', 'in', owners)
      .execute(),
  );
  const counts: Partial<Record<SubjectTarget, number>> = {
    sessions: scope.sessions.length,
    conversations: scope.conversations.length,
    runs: runIds.length,
    attachments: scope.attachments.length,
    agentFiles: sum(files),
  };
  for (const target of subjectTargets) counts[target] ??= hangsOnRuns(target) ? await ofRuns(target) : 0;
  counts.spans = (counts.spans ?? 0) + scope.waitingSpans.length;
  return Object.fromEntries(subjectTargets.map((target) => [target, counts[target]])) as Record<SubjectTarget, number>;
};

// What hangs on a run by its id, whatever it is called in an export.
const hanging = [
  ...Object.values(subjectTables),
  'run_steps',
  'run_heartbeats',
  'run_cancels',
  'run_model_calls',
  'approval_handovers',
  'session_requests',
] as const;

/** Messages of a conversation that no other one shares; others stay with the conversation that still needs them. */
const deleteMessages = async (db: Db, conversationId: string): Promise<void> => {
  const shared = await db
    .selectFrom('conversation_segments')
    .select((eb) => eb.fn.max('last_sequence').as('last'))
    .where('source_id', '=', conversationId)
    .executeTakeFirst();
  await db
    .deleteFrom('session_messages')
    .where('conversation_id', '=', conversationId)
    .where('sequence', '>', shared?.last ?? -1)
    .execute();
};

/**
 * Answers that are kept to be given again. Those of idempotency keys name their run; the response cache does not know
 * whose its answers are, so that the tenant's goes whole: what is asked again is answered by the model.
 */
const deleteAnswers = async (db: Db, dialect: SqlDialect, { tenantId, runs }: SubjectScope): Promise<void> => {
  if (runs.length === 0) return;
  const runIds = runs.map(({ id }) => id);
  await db
    .deleteFrom('idempotency_keys')
    .where('tenant_id', '=', tenantId)
    .where(dialect.jsonMemberIn('headers', 'X-Run-Id', runIds))
    .execute();
  await db.deleteFrom('response_cache').where('tenant_id', '=', tenantId).execute();
};

/** Remembers of which time runs are missing, for those who add them up. */
const markErased = async (db: Db, { tenantId, runs }: SubjectScope): Promise<void> => {
  if (runs.length === 0) return;
  const sweptUntil = runs.reduce((last, run) => Math.max(last, run.created_at), 0) + 1;
  await db
    .insertInto('retention_marks')
    .values({ tenant_id: tenantId, target: erasedRunsMark, swept_until: sweptUntil })
    .onConflict((conflict) =>
      conflict
        .columns(['tenant_id', 'target'])
        .doUpdateSet({ swept_until: sweptUntil })
        .where('retention_marks.swept_until', '<', sweptUntil),
    )
    .execute();
};

/** What items of jobs were asked to do, with the payload that has them all; the items themselves tell how they ended. */
const deleteInputs = async (db: Db, { runs }: SubjectScope): Promise<void> => {
  const ofItems = runs.filter(({ id, job_id: jobId }) => jobId !== null && jobId !== id);
  for (const chunk of chunks(ofItems)) {
    const jobIds = [...new Set(chunk.flatMap(({ job_id: jobId }) => jobId ?? []))];
    const runIds = chunk.map(({ id }) => id);
    await db
      .updateTable('job_items')
      .set({ input: null })
      .where('job_id', 'in', jobIds)
      .where('run_id', 'in', runIds)
      .execute();
    await db.updateTable('jobs').set({ payload: null }).where('id', 'in', jobIds).execute();
  }
};

const deleteSubject = async (db: Db, dialect: SqlDialect, scope: SubjectScope): Promise<void> => {
  const { tenantId } = scope;
  await deleteAnswers(db, dialect, scope);
  await markErased(db, scope);
  await deleteInputs(db, scope);
  await deleteSpans(db, tenantId, scope.identity);
  for (const { conversation_id: id } of scope.sessions) await deleteMessages(db, id);
  for (const ids of chunks(scope.conversations.map(({ id }) => id)))
    await db.deleteFrom('openai_conversations').where('tenant_id', '=', tenantId).where('id', 'in', ids).execute();
  for (const ids of chunks(scope.runs.map(({ id }) => id))) {
    for (const table of hanging)
      await db
        .deleteFrom(table as 'run_inputs')
        .where('run_id', 'in', ids)
        .execute();
    await db.deleteFrom('runs').where('tenant_id', '=', tenantId).where('id', 'in', ids).execute();
  }
  for (const { id, labels } of scope.runs)
    for (const [key, value] of Object.entries(JSON.parse(labels ?? '{}') as Record<string, string>))
      await db
        .deleteFrom('run_labels')
        .where('tenant_id', '=', tenantId)
        .where('key', '=', key)
        .where('value', '=', value)
        .where('run_id', '=', id)
        .execute();
  for (const ids of chunks(scope.attachments.map(({ id }) => id)))
    await db.deleteFrom('attachments').where('tenant_id', '=', tenantId).where('id', 'in', ids).execute();
  for (const owners of chunks(scope.fileOwners))
    for (const table of ['agent_files', 'agent_states'] as const)
      await db
        .deleteFrom(table as 'agent_files')
        .where('tenant_id', '=', tenantId)
        .where('owner', 'in', owners)
        .execute();
};

export const subjectStore = defineStore((storage) => ({
  /** What belongs to a person in a tenant, by user, session and owner, with the runs below. */
  find: (tenantId: string, identity: SubjectIdentity) => findSubject(storage.db, tenantId, identity),
  count: (scope: SubjectScope) => countSubject(storage.db, scope),
  /** Readable rows of some runs, in no order but that of their key. */
  async ofRuns(tenantId: string, target: HangingTarget, runIds: readonly string[]): Promise<readonly object[]> {
    const rows = await rowsOfRuns(storage.db, target, runIds);
    return rows.map((row) => storage.rows.openAny(subjectTables[target], tenantId, row));
  },
  async files(tenantId: string, owners: readonly string[]): Promise<readonly object[]> {
    const rows = await filesOf(storage.db, tenantId, owners);
    return rows.map((row) => storage.rows.openAny('agent_files', tenantId, row));
  },
  /** What agents elsewhere have told, and no run says yet. */
  async waitingSpans(tenantId: string, keys: readonly WaitingSpanKey[]): Promise<readonly object[]> {
    const rows = await waitingSpanRows(storage.db, tenantId, keys);
    return rows.map((row) => JSON.parse(storage.rows.open('external_spans', tenantId, row).span ?? '{}') as object);
  },
  /** The conversation with its metadata readable. */
  conversation: (row: OpenAiConversationRow) => storage.rows.open('openai_conversations', row.tenant_id, row),
  /** The session with its content readable. */
  opened: (session: SessionRow) => storage.rows.open('sessions', session.tenant_id, session),
  /** Everything of the scope but its sessions, which their own feature takes away. */
  remove: (scope: SubjectScope) => storage.atomic((db) => deleteSubject(db, storage.dialect, scope)),
}));

export type SubjectStore = StoreOf<typeof subjectStore>;
