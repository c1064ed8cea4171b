import type { Clock } from '../../core/clock.ts';
import type { Config } from '../../core/config/schema.ts';
import { byKey, type InstanceState } from '../../core/instance-state.ts';
import type { Logger } from '../../core/logger.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { Announcements } from '../../db/announcements.ts';
import type { BatchedWrites } from '../../db/batched-writes.ts';
import { ConditionFailedError, type Statement } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { QuotaNoticeRow } from '../../db/tables/quotas.ts';
import type { RunQuotas, UnrecordedCount } from '../../engine/control/index.ts';
import { createPriceList } from '../../engine/pricing.ts';
import type { AuditLog } from '../audit/index.ts';
import type { WebhookEvents } from '../webhooks/index.ts';
import { createPeriodClock } from './period-clock.ts';
import { lapsedAdmission } from './place-decision.ts';
import { createQuotaAdmission, type QuotaAdmission } from './quota-admission.ts';
import { createQuotaAllowances } from './quota-allowances.ts';
import { createQuotaAnnouncements, toNotice } from './quota-announcements.ts';
import { createQuotaBacklog, type QuotaBacklog } from './quota-backlog.ts';
import { createRunCounters, type RunCounters } from './quota-counters.store.ts';
import { observeQuotas } from './quota-gauges.ts';
import { ownedKeeping, sharedKeeping } from './quota-keeping.ts';
import { createQuotaMetrics } from './quota-metrics.ts';
import { createQuotaNotices } from './quota-notices.store.ts';
import { quotaRuleStore } from './quota-rules.store.ts';
import { noUse } from './quota-use.ts';
import { quotaVerifier } from './quota-verification.store.ts';
import { appliesTo } from './quotas.rules.ts';
import { limitsOf, quotaService } from './quotas.service.ts';
import { createQuotaStore } from './quotas.store.ts';
import type { StoredTurns } from './unfinished-use.store.ts';

export interface QuotasDeps {
  readonly config: Config;
  readonly storage: Storage;
  readonly batch: BatchedWrites;
  readonly state: Pick<InstanceState, 'entries'>;
  readonly turns: StoredTurns;
  /** Who is told of thresholds. */
  readonly events: WebhookEvents;
  readonly audit: Pick<AuditLog, 'change' | 'save'>;
  readonly lifecycle: { readonly draining: boolean };
  readonly telemetry: Telemetry;
  readonly log: Logger;
  readonly clock: Clock;
  /** Of leases and periods, on which the processes of a store agree. */
  readonly storeClock: Clock;
  readonly announcements: Pick<Announcements, 'announce' | 'listen'>;
  /** True: other processes take holds in the same store. */
  readonly isShared: boolean;
  /** Name of this process among them. */
  readonly processId: string;
  readonly now: () => number;
  readonly newId: () => string;
}

/** Counting and limiting of runs; absent while quotas are switched off. */
export interface ActiveQuotas {
  readonly admission: QuotaAdmission;
  readonly counters: RunCounters;
  readonly engine: RunQuotas;
  /** Counts a run that gets no row. */
  countUnrecorded(tenantId: string, agentName: string, runId: string, counts: boolean): Promise<UnrecordedCount>;
  /** For a run that is closed where it does not execute: `closing` gives the writes that go with its end, `closed` follows them. */
  readonly unexecuted: {
    closing(runId: string): readonly Statement[];
    closed(tenantId: string, runId: string): void;
  };
}

export const quotasFeature = (deps: QuotasDeps) => {
  const { config, storage, batch, log, now } = deps;
  const { Quotas: settings, RunRecording: recording, Observability: observability, Pricing: pricing } = config.Service;
  const metrics = createQuotaMetrics(deps.telemetry);
  const periods = createPeriodClock(settings.TimeZone, deps.storeClock.now);
  const ruleStore = storage.stores(quotaRuleStore);
  const rules = deps.state.entries('quotaRules', { load: byKey(ruleStore.list) });
  const wake = (tenantId: string | null): void => {
    admission.wake(tenantId);
    allowances?.wake(tenantId);
  };
  const unwritten: Pick<QuotaBacklog, 'added' | 'openAdded'> = {
    added: (...asked) => backlog.added(...asked),
    openAdded: (...asked) => backlog.openAdded(...asked),
  };
  const store = storage.stores(createQuotaStore(unwritten));
  const kept = { ...deps, store, rules, periods, unwritten, wake, strict: settings.Strict };
  const keeping = deps.isShared ? sharedKeeping({ ...kept, holder: deps.processId }) : ownedKeeping(kept);
  const { holds } = keeping;
  const noticeStore = createQuotaNotices(
    rules,
    periods,
    settings.ThresholdPercents,
    deps.storeClock.now,
    deps.isShared,
  );
  const notices = storage.stores(noticeStore);
  const counters = storage.stores(createRunCounters(periods, notices, holds, now, batch, deps.isShared));
  const backlog: QuotaBacklog = createQuotaBacklog({
    write: (statements) => batch.write(statements),
    booking: (id, root, runs, use) => counters.booked({ ...root, id, counts: runs > 0 }, use),
    clock: deps.clock,
    log,
  });
  /** What is told, and that it was, as one unit: a notice goes out once, whoever comes upon it. */
  const passOn = async (rows: readonly QuotaNoticeRow[]): Promise<void> => {
    await deps.events.current();
    await storage.transaction(async (stores) => {
      const first = await stores(noticeStore).announced(rows.map(({ id }) => id));
      const told = rows.filter(({ id }) => first.has(id));
      const deliveries = told.flatMap((row) =>
        deps.events.deliveries(row.tenant_id, 'quota.threshold', row.created_at, toNotice(row, periods.timeZone)),
      );
      if (deliveries.length > 0) await stores.write(deliveries);
    });
    if (rows.some((row) => deps.events.hears(row.tenant_id, 'quota.threshold'))) deps.events.committed();
  };
  const announcements = createQuotaAnnouncements(notices, passOn, periods.timeZone, log, deps.clock);
  const admission = createQuotaAdmission({
    ...deps,
    rules,
    places: keeping.places,
    periods,
    prices: createPriceList(pricing.Currency, pricing.Models),
    allowOnStoreFailure: settings.AllowOnStoreFailure,
    metrics,
  });
  const allowances = settings.Strict
    ? createQuotaAllowances({
        rules,
        rooms: keeping.rooms,
        async countedRoot(tenantId, { id, agentName, day }) {
          const open = counters.rootOf(tenantId, id);
          if (open !== undefined) return open;
          return { tenantId, agentName, day: day ?? (await store.dayOf(tenantId, id)) ?? periods.current().day };
        },
        clock: deps.clock,
      })
    : null;
  if (settings.Enabled && observability.EnableQuotaUsageGauge)
    observeQuotas({ ...deps, store, clock: periods, everyMs: observability.QuotaUsageRefreshInterval });
  /** Whether a run may be made that the store does not count: no quota limits it, or none has to hold then. */
  const maybeUnwritten = (tenantId: string, agentName: string): boolean => {
    if (settings.AllowOnStoreFailure && !settings.Strict) return true;
    return rules.known(tenantId)?.some((rule) => appliesTo(rule, agentName)) === false;
  };
  const isLimited = (tenantId: string): boolean => rules.known(tenantId)?.some((rule) => rule.enabled) ?? true;

  const closing: RunQuotas['closing'] = ({ tenantId, rootRunId, userId, ...use }) => {
    if (!settings.PublishThresholdToRunStream || !isLimited(tenantId)) return undefined;
    const tell = async (): Promise<readonly object[]> => {
      const foretold = notices.foretold(tenantId, rootRunId, use);
      if (foretold.length > 0) await batch.write(foretold);
      const rows = await notices.ofRun(rootRunId);
      return rows.map((row) => ({ ...toNotice(row, periods.timeZone), runId: rootRunId, userId }));
    };
    return tell().catch((error: unknown) => {
      log.warn({ tenantId, runId: rootRunId, error }, 'Quota notices of a run could not be written');
      return [];
    });
  };

  const active: ActiveQuotas = {
    admission,
    counters,
    engine: {
      calls: allowances,
      closing,
      unrecorded: (tenantId, { rootRunId, agentName, day }, use) =>
        counters.closedUnrecorded({ id: rootRunId, tenantId, agentName, day, counts: false }, use),
      unwritten({ tenantId, id, root, isAdmission }, error) {
        holds.unfence(id);
        // The store works, and another process has released the place of a run that did not begin in time.
        if (isAdmission && error instanceof ConditionFailedError) return false;
        metrics.storeFailed();
        if (isAdmission && !maybeUnwritten(tenantId, root.agentName)) return false;
        if (isAdmission)
          log.error({ tenantId, runId: id, error }, 'A run is counted in memory until the store takes it');
        const { agentName } = root;
        const counted = counters.rootOf(tenantId, root.id) ?? { tenantId, agentName, day: counters.day(id) };
        backlog.add(id, counted, isAdmission ? 1 : 0, false);
        return true;
      },
      writtenLate(runId) {
        backlog.written(runId);
        holds.release(runId);
      },
      recordDropped: (runId) => backlog.alone(runId),
      ended({ tenantId, runId, isBooked, isLost, count, ...use }) {
        if (isLost) {
          backlog.written(runId);
          holds.lose(runId);
          return;
        }
        // Where runs have no rows nothing follows that would bring the use into the store.
        if (!isBooked && count?.isWritten === true) backlog.add(runId, { tenantId, ...count }, 0, true);
        const isKept = backlog.has(runId);
        // What a row or its end brings along later is not booked twice.
        if (isBooked && count === null) backlog.written(runId);
        else backlog.ended(runId, isBooked ? noUse : use);
        if (isBooked || isKept) holds.release(runId);
        else holds.keep(runId);
        wake(tenantId);
        if (isLimited(tenantId)) announcements.look(tenantId);
      },
    },
    unexecuted: {
      closing: (runId) => holds.settled(runId),
      closed(tenantId, runId) {
        holds.release(runId);
        wake(tenantId);
        if (isLimited(tenantId)) announcements.look(tenantId);
      },
    },
    async countUnrecorded(tenantId, agentName, runId, counts) {
      const day = counters.day(runId);
      try {
        await batch.write(counters.openedUnrecorded({ id: runId, tenantId, agentName, day, counts }));
        return { rootRunId: runId, agentName, day, isWritten: true };
      } catch (error) {
        holds.unfence(runId);
        if (error instanceof ConditionFailedError) throw lapsedAdmission(error);
        metrics.storeFailed();
        if (counts && !maybeUnwritten(tenantId, agentName)) throw error;
        log.error({ tenantId, runId, error }, 'A run is counted in memory until the store takes it');
        backlog.add(runId, { tenantId, agentName, day }, counts ? 1 : 0, true);
        return { rootRunId: runId, agentName, day, isWritten: false };
      }
    },
  };

  return {
    handlers: quotaService({
      ...deps,
      store,
      ruleStore,
      rules: {
        changed(tenantId) {
          rules.changed(tenantId);
          wake(tenantId);
        },
      },
      verify: storage.stores(quotaVerifier),
      clock: periods,
      recordingEnabled: recording.Enabled,
    }),
    active: settings.Enabled ? active : null,
    leftovers: { quotaHolds: keeping.recover },
    started(): void {
      if (settings.Enabled) keeping.start();
      announcements.look(null);
    },
    /** Refuses those that wait for a place. */
    draining: async (): Promise<void> => admission.wake(null),
    async close(): Promise<void> {
      admission.close();
      await backlog.close();
      await announcements.close();
      await keeping
        .close()
        .catch((error: unknown) =>
          log.warn({ error }, 'Quota holds of this process lapse, since they could not be given up'),
        );
    },
  };
};

export type QuotasFeature = ReturnType<typeof quotasFeature>;

export { type Admission, lapsedAdmission } from './place-decision.ts';
export type { RunCounters } from './quota-counters.store.ts';
export {
  createQuotaReplay,
  type PastRun,
  type PastThreshold,
  type PastVerdict,
  replayStart,
} from './quota-replay.ts';
export { shownAmount } from './quotas.rules.ts';
export type { QuotaRule } from './quotas.store.ts';
export { limitsOf };
