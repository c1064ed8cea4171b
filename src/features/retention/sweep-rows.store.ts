import { createTurns } from '../../core/event-loop-turns.ts';
import { defineStore, type StoreDefinition } from '../../db/define-store.ts';
import type { AttachmentRow, Tables } from '../../db/tables.ts';
import { decodePack } from '../../engine/record/index.ts';
import { readableRow } from './readable-row.ts';
import type { RetentionTarget } from './retention.schema.ts';
import type { SweepUnit } from './sweep-units.store.ts';

export type ArchivedRow = Readonly<Record<string, unknown>>;

/** Rows as an archive gets them. */
export type SweepRows = (
  target: RetentionTarget,
  tenantId: string,
  units: readonly SweepUnit[],
) => Promise<readonly ArchivedRow[]>;

export interface SweepRowsDeps {
  /** The bytes of an attachment; null: they are gone. */
  readonly bytesOf: (row: AttachmentRow) => Promise<Uint8Array | null>;
  /** The messages of a session. */
  readonly messagesOf: (tenantId: string, sessionId: string) => Promise<readonly unknown[]>;
}

type KeyedTable =
  | 'jobs'
  | 'webhook_deliveries'
  | 'skill_script_grants'
  | 'idempotency_keys'
  | 'openai_responses'
  | 'openai_conversations'
  | 'attachments'
  | 'sessions';
type Reader = (tenantId: string, keys: readonly string[], units: readonly SweepUnit[]) => Promise<ArchivedRow[]>;

// Lists in SQL text are of one length each, so that a few statements stay prepared.
const atOnce = 100;
// Reading and unpacking as many takes about a millisecond.
const packsAtOnce = 50;

const chunks = <T>(list: readonly T[]): T[][] =>
  Array.from({ length: Math.ceil(list.length / atOnce) }, (_, index) =>
    list.slice(index * atOnce, (index + 1) * atOnce),
  );

export const createSweepRows = ({ bytesOf, messagesOf }: SweepRowsDeps): StoreDefinition<SweepRows> =>
  defineStore((storage) => {
    const { db } = storage;
    // An archive is for readers without this store, who have no keys either.
    const { open } = storage.rows;

    /** A log in parts, since one of a long run is longer than a turn may be. */
    const eventsOf = async (
      tenantId: string,
      runId: string,
      turn: () => Promise<void> | null,
    ): Promise<ArchivedRow[]> => {
      const rows: ArchivedRow[] = [];
      for (let from = 0; ; ) {
        const packs = await db
          .selectFrom('run_events')
          .selectAll()
          .where('run_id', '=', runId)
          .where('first_sequence', '>=', from)
          .orderBy('first_sequence')
          .limit(packsAtOnce)
          .execute();
        for (const pack of packs) {
          const { events } = open('run_events', tenantId, pack);
          for (const { data } of decodePack(runId, pack.first_sequence, events, 0))
            rows.push(JSON.parse(data) as ArchivedRow);
        }
        await turn();
        const last = packs.at(-1);
        if (last === undefined || packs.length < packsAtOnce) return rows;
        from = last.last_sequence + 1;
      }
    };

    const events = async (tenantId: string, runIds: readonly string[]): Promise<ArchivedRow[]> => {
      const turn = createTurns();
      const logs: ArchivedRow[][] = [];
      for (const runId of runIds) logs.push(await eventsOf(tenantId, runId, turn));
      return logs.flat();
    };

    const byRun = async (
      table: 'run_inputs' | 'tool_invocations' | 'run_scores' | 'approvals',
      tenantId: string,
      runIds: readonly string[],
    ) => {
      const rows = await db.selectFrom(table).selectAll().where('run_id', 'in', runIds).execute();
      return rows.map((row) => readableRow(storage.rows.openAny(table, tenantId, row)));
    };

    const spans = async (tenantId: string, rootIds: readonly string[]): Promise<ArchivedRow[]> => {
      const rows = await db
        .selectFrom('run_traces')
        .select(['run_id', 'spans'])
        .where('run_id', 'in', rootIds)
        .execute();
      return rows.flatMap((row) => JSON.parse(open('run_traces', tenantId, row).spans) as ArchivedRow[]);
    };

    const trees = async (tenantId: string, rootIds: readonly string[]): Promise<ArchivedRow[]> => {
      const runs = await db
        .selectFrom('runs')
        .selectAll()
        .where('tenant_id', '=', tenantId)
        .where((eb) => eb.or([eb('id', 'in', rootIds), eb('root_run_id', 'in', rootIds)]))
        .orderBy('id')
        .execute();
      const ids = runs.map(({ id }) => id);
      const [logs, inputs, invocations, scores, approvals] = await Promise.all([
        events(tenantId, ids),
        byRun('run_inputs', tenantId, ids),
        byRun('tool_invocations', tenantId, ids),
        byRun('run_scores', tenantId, ids),
        byRun('approvals', tenantId, ids),
      ]);
      const of = (rows: readonly ArchivedRow[], id: string) => rows.filter((row) => row['runId'] === id);
      return runs.map((run) => ({
        ...readableRow(run),
        input: of(inputs, run.id)[0] ?? null,
        events: of(logs, run.id),
        toolInvocations: of(invocations, run.id),
        scores: of(scores, run.id),
        approvals: of(approvals, run.id),
      }));
    };

    /** Rows of the tenant by their keys. */
    const rowsOf = <T extends KeyedTable>(table: T, tenantId: string, keys: readonly string[]) =>
      db
        .selectFrom(table as 'jobs')
        .selectAll()
        .where('tenant_id', '=', tenantId)
        .where((table === 'idempotency_keys' ? 'key' : 'id') as 'id', 'in', keys)
        .execute() as unknown as Promise<Tables[T][]>;

    const keyed = async (table: KeyedTable, tenantId: string, keys: readonly string[]): Promise<ArchivedRow[]> =>
      (await rowsOf(table, tenantId, keys)).map((row) => readableRow(storage.rows.openAny(table, tenantId, row)));

    const attachments = async (tenantId: string, keys: readonly string[]): Promise<ArchivedRow[]> =>
      Promise.all(
        (await rowsOf('attachments', tenantId, keys)).map(async (row) => {
          const bytes = await bytesOf(row);
          return { ...readableRow(row), bytes: bytes === null ? null : Buffer.from(bytes).toString('base64') };
        }),
      );

    const sessions = async (tenantId: string, keys: readonly string[]): Promise<ArchivedRow[]> =>
      Promise.all(
        (await rowsOf('sessions', tenantId, keys)).map(async (row) => ({
          ...readableRow(open('sessions', tenantId, row)),
          messages: await messagesOf(tenantId, row.id),
        })),
      );

    const named = async (
      table: 'tool_invocations' | 'run_scores',
      tenantId: string,
      units: readonly SweepUnit[],
    ): Promise<ArchivedRow[]> => {
      const wanted = new Set(units.map(({ sub }) => sub));
      const rows = await byRun(table, tenantId, [...new Set(units.map(({ key }) => key))]);
      return rows.filter((row) => wanted.has(String(row['id'])));
    };

    const readers: Readonly<Partial<Record<RetentionTarget, Reader>>> = {
      RunEvents: events,
      RunInputs: (tenantId, keys) => byRun('run_inputs', tenantId, keys),
      ToolInvocations: (tenantId, _keys, units) => named('tool_invocations', tenantId, units),
      RunScores: (tenantId, _keys, units) => named('run_scores', tenantId, units),
      Spans: spans,
      Jobs: (tenantId, keys) => keyed('jobs', tenantId, keys),
      WebhookDeliveries: (tenantId, keys) => keyed('webhook_deliveries', tenantId, keys),
      SkillScriptGrants: (tenantId, keys) => keyed('skill_script_grants', tenantId, keys),
      Attachments: attachments,
      Sessions: sessions,
      Conversations: async (tenantId, keys) => [
        ...(await keyed('openai_responses', tenantId, keys)),
        ...(await keyed('openai_conversations', tenantId, keys)),
      ],
      IdempotencyKeys: (tenantId, keys) => keyed('idempotency_keys', tenantId, keys),
      Runs: trees,
    };

    return async (target, tenantId, units) => {
      const turn = createTurns();
      const parts: ArchivedRow[][] = [];
      for (const chunk of chunks(units)) {
        const keys = chunk.map(({ key }) => key);
        parts.push((await readers[target]?.(tenantId, keys, chunk)) ?? []);
        await turn();
      }
      return parts.flat();
    };
  });
