import type { Clock, Timer } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { QuotaNoticeRow } from '../../db/tables/quotas.ts';
import type { QuotaNotices } from './quota-notices.store.ts';
import { shownAmount } from './quotas.rules.ts';

// One look serves every run that ended meanwhile; nobody waits for a notice.
const lookEveryMs = 250;

/** A notice as webhooks and run events tell it. */
export const toNotice = (row: QuotaNoticeRow, timeZone: string) => ({
  noticeId: row.id,
  quotaId: row.quota_id,
  agentName: row.agent_name === '' ? null : row.agent_name,
  metric: row.metric,
  period: row.period,
  thresholdPercent: row.threshold_percent,
  limit: shownAmount(row.metric, row.limit_value),
  used: shownAmount(row.metric, row.used_value),
  resetsAt: resetsAt(row, timeZone),
});

const resetsAt = ({ period, period_start: start }: QuotaNoticeRow, timeZone: string): string => {
  const begun = Temporal.PlainDate.from(start);
  const next = begun.add(period === 'Daily' ? { days: 1 } : { months: 1 });
  return new Date(next.toZonedDateTime({ timeZone }).startOfDay().epochMilliseconds).toISOString();
};

/**
 * The table is the outbox: a notice is in it from the transaction that crossed the threshold, and is marked once it was
 * told. One that was told right before a crash is told again, under the same id.
 */
export const createQuotaAnnouncements = (
  notices: Pick<QuotaNotices, 'waiting'>,
  passOn: (rows: readonly QuotaNoticeRow[]) => Promise<void>,
  timeZone: string,
  log: Pick<Logger, 'info' | 'warn'>,
  clock: Pick<Clock, 'after'>,
) => {
  const asked = new Set<string | null>();
  let working: Promise<void> | null = null;
  let timer: Timer | null = null;

  const tell = async (tenantId: string | null): Promise<void> => {
    for (;;) {
      const rows = await notices.waiting(tenantId);
      if (rows.length === 0) return;
      for (const row of rows)
        log.info(
          { tenantId: row.tenant_id, runId: row.run_id, ...toNotice(row, timeZone) },
          'A quota threshold was crossed',
        );
      await passOn(rows);
    }
  };

  const work = async (): Promise<void> => {
    for (const tenantId of asked) {
      asked.delete(tenantId);
      // What could not be told stays in the outbox, for the next look or the next start.
      await tell(tenantId).catch((error: unknown) => log.warn({ tenantId, error }, 'Quota notices could not be read'));
    }
  };

  const start = (): Promise<void> => {
    timer = null;
    working ??= work().finally(() => {
      working = null;
    });
    return working;
  };

  return {
    /** Soon, and not in the caller's way; null: of every tenant. */
    look(tenantId: string | null): void {
      asked.add(tenantId);
      timer ??= clock.after(lookEveryMs, start).unref();
    },
    /** Resolves when nothing is being passed on. */
    async close(): Promise<void> {
      await working;
      if (timer === null) return;
      timer.stop();
      await start();
    },
  };
};

/** Passes on what the notices say. */
export type QuotaAnnouncements = ReturnType<typeof createQuotaAnnouncements>;
