import { type ExpressionBuilder, sql } from 'kysely';
import { defineStore, type StoreHandle, type StoreOf } from '../../db/define-store.ts';
import type { RetentionTarget } from './retention.schema.ts';
import { targetQueries, type UnitRow } from './sweep-targets.store.ts';

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/** Ids that runs in line or in progress name in what they were given: those of attachments are among them. */
const usedByOpenRuns = async ({ db, rows }: StoreHandle, tenantId: string): Promise<readonly string[]> => {
  const open = db
    .selectFrom('runs')
    .where('runs.tenant_id', '=', tenantId)
    .where('runs.status', 'in', ['Queued', 'Running']);
  const inputs = await open
    .innerJoin('run_inputs', 'run_inputs.run_id', 'runs.id')
    .select(['run_inputs.run_id', 'run_inputs.messages'])
    .execute();
  const jobs = await open.innerJoin('jobs', 'jobs.id', 'runs.job_id').select(['jobs.id', 'jobs.payload']).execute();
  const texts = [
    ...inputs.map((row) => rows.open('run_inputs', tenantId, row).messages),
    ...jobs.map((row) => rows.open('jobs', tenantId, row).payload),
  ];
  const named = new Set(texts.flatMap((text) => text?.match(uuid) ?? []));
  if (named.size === 0) return [];
  const used = await db
    .selectFrom('attachments')
    .select('id')
    .where('tenant_id', '=', tenantId)
    .where('id', 'in', [...named])
    .execute();
  return used.map(({ id }) => id);
};

/** What goes together: a row, the log of a run, a tree of runs. */
export interface SweepUnit {
  readonly key: string;
  /** Second part of the key; empty where one is enough. */
  readonly sub: string;
  /** Epoch milliseconds from which its age counts. */
  readonly age: number;
  readonly rows: number;
}

/** What goes: older than `cutoff`, or not newer than `newestToGo` in the order of age and key. */
export interface SweepBound {
  readonly cutoff: number | null;
  readonly newestToGo: Omit<SweepUnit, 'rows'> | null;
}

/** Rows from this age on have to be there, whatever is missing of older ones. Epoch milliseconds. */
export const sweptUntil = ({ cutoff, newestToGo }: SweepBound): number =>
  Math.max(cutoff ?? 0, (newestToGo?.age ?? -1) + 1);

const isPast = (eb: ExpressionBuilder<{ unit: UnitRow }, 'unit'>, { cutoff, newestToGo: last }: SweepBound) =>
  eb.or([
    ...(cutoff === null ? [] : [eb('age', '<', cutoff)]),
    ...(last === null
      ? []
      : [
          eb('age', '<', last.age),
          eb.and([eb('age', '=', last.age), eb('key', '<', last.key)]),
          eb.and([eb('age', '=', last.age), eb('key', '=', last.key), eb('sub', '<=', last.sub)]),
        ]),
  ]);

const nothing: SweepBound = { cutoff: null, newestToGo: null };
const isNothing = ({ cutoff, newestToGo }: SweepBound): boolean => cutoff === null && newestToGo === null;

/** Finds what a policy removes, in the thread that scans: the event loop only gets the keys. */
export const createSweepUnits = (now: () => number) =>
  defineStore((storage) => {
    const unitsOf = async (target: RetentionTarget, tenantId: string) => {
      const query = targetQueries[target];
      if (query === undefined) return null;
      const usedAttachments = target === 'Attachments' ? await usedByOpenRuns(storage, tenantId) : [];
      const units = query.units(storage, tenantId, { now: now(), usedAttachments });
      return { order: query.order, units: units.as('unit') };
    };

    return {
      /** Fixes what goes for the whole sweep. */
      async bound(
        target: RetentionTarget,
        tenantId: string,
        { cutoff, maxRows }: { readonly cutoff: number | null; readonly maxRows: number | null },
      ): Promise<SweepBound> {
        if (maxRows === null) return { cutoff, newestToGo: null };
        const source = await unitsOf(target, tenantId);
        if (source === null) return nothing;
        const sums = storage.db
          .selectFrom(source.units)
          .select(['key', 'sub', 'age'])
          .select(sql<number>`sum("rows") over (order by age desc, key desc, sub desc)`.as('total'));
        const [newestToGo] = await storage.scan(
          storage.db
            .selectFrom(sums.as('sums'))
            .select(['key', 'sub', 'age'])
            .where('total', '>', maxRows)
            .orderBy('age', 'desc')
            .orderBy('key', 'desc')
            .orderBy('sub', 'desc')
            .limit(1),
        );
        return { cutoff, newestToGo: newestToGo ?? null };
      },

      /** The next units behind one, oldest first; null: from the start. */
      async next(
        target: RetentionTarget,
        tenantId: string,
        bound: SweepBound,
        behind: SweepUnit | null,
        limit: number,
      ): Promise<readonly SweepUnit[]> {
        const source = isNothing(bound) ? null : await unitsOf(target, tenantId);
        if (source === null) return [];
        let query = storage.db
          .selectFrom(source.units)
          .select(['key', 'sub', 'age', 'rows'])
          .where((eb) => isPast(eb, bound))
          .limit(limit);
        // The first comparison of each pair is what an index can use.
        if (source.order === 'key') {
          if (behind !== null)
            query = query
              .where('key', '>=', behind.key)
              .where((eb) => eb.or([eb('key', '>', behind.key), eb('sub', '>', behind.sub)]));
          return storage.scan(query.orderBy('key').orderBy('sub'));
        }
        if (behind !== null)
          query = query
            .where('age', '>=', behind.age)
            .where((eb) => eb.or([eb('age', '>', behind.age), eb('key', '>', behind.key)]));
        return storage.scan(query.orderBy('age').orderBy('key'));
      },

      /** How many rows go. */
      async count(target: RetentionTarget, tenantId: string, bound: SweepBound): Promise<number> {
        const source = isNothing(bound) ? null : await unitsOf(target, tenantId);
        if (source === null) return 0;
        const [row] = await storage.scan(
          storage.db
            .selectFrom(source.units)
            .select(sql<number>`coalesce(sum("rows"), 0)`.as('total'))
            .where((eb) => isPast(eb, bound)),
        );
        return Number(row?.total ?? 0);
      },
    };
  });

export type SweepUnits = StoreOf<ReturnType<typeof createSweepUnits>>;
