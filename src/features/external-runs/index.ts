import type { Attribution } from '../../core/caller/attribution.ts';
import type { RunAuthorization } from '../../core/caller/run-authorization.ts';
import type { Clock } from '../../core/clock.ts';
import type { Config } from '../../core/config/index.ts';
import type { Logger } from '../../core/logger.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { Storage } from '../../db/storage.ts';
import type { PriceList } from '../../engine/pricing.ts';
import { logRunEnd, type RunJournal } from '../../engine/record/index.ts';
import type { ModelProviders } from '../../providers/models/index.ts';
import type { ActiveQuotas } from '../quotas/index.ts';
import type { SessionAccess } from '../sessions/index.ts';
import { createExternalRunRecord } from './external-run-record.ts';
import { externalSpanStore } from './external-spans.store.ts';
import { createExternalSpans } from './external-spans.ts';
import { createExternalTelemetry } from './external-telemetry.ts';
import { traceService } from './traces.service.ts';

export interface ExternalRunsDeps {
  readonly config: Config;
  readonly storage: Storage;
  readonly writes: { readonly journal: RunJournal; readonly prices: PriceList };
  readonly providers: Pick<ModelProviders, 'list'>;
  readonly authorization: RunAuthorization;
  readonly attribution: Attribution;
  readonly owners: SessionAccess;
  /** Null: runs do not count against quotas. */
  readonly quotas: Pick<ActiveQuotas, 'unexecuted'> | null;
  readonly telemetry: Pick<Telemetry, 'metrics'>;
  readonly log: Logger;
  readonly lifecycle: { readonly draining: boolean };
  readonly storeClock: Clock;
  readonly newId: () => string;
}

/** Runs that other programs execute and tell of by OpenTelemetry. */
export const externalRunsFeature = (deps: ExternalRunsDeps) => {
  const { Service, Host } = deps.config;
  const { RunRecording: recording, Observability: observability } = Service;
  const telemetry = createExternalTelemetry({ ...deps, store: deps.storage.stores(externalSpanStore) });
  const record = createExternalRunRecord({
    ...deps,
    ...deps.writes,
    recording: {
      enabled: recording.Enabled,
      recordMessageDeltas: recording.RecordMessageDeltas,
      recordReasoningDeltas: recording.RecordReasoningDeltas,
      recordRunInput: recording.RecordRunInput,
      recordToolPayloads: recording.RecordToolPayloads,
      maxPayloadLength: recording.MaxPayloadLength,
    },
  });
  const spans = createExternalSpans({
    ...deps,
    journal: deps.writes.journal,
    record,
    stored(tenantId, tree) {
      telemetry.stored(tree);
      for (const end of record.ends(tenantId, tree)) logRunEnd(deps.log, end);
      deps.quotas?.unexecuted.closed(tenantId, tree.runs[0].id);
    },
    setAside: (count) => telemetry.sent('set_aside', count),
    dropped: (count) => telemetry.sent('dropped', count),
    settings: {
      settleAfterMs: Host.Traces.SettleAfter,
      orphansAfterMs: Host.Traces.OrphansAfter,
      setAsideForMs: Host.Traces.SetAsideFor,
      maxSpansPerRun: observability.Enabled && observability.PersistSpans ? observability.MaxSpansPerRun : null,
      recordSensitiveData: observability.RecordSensitiveData,
      maxPayloadLength: recording.MaxPayloadLength,
    },
    clock: deps.storeClock,
  });
  return {
    handlers: traceService({
      ...deps,
      spans,
      telemetry,
      recordingEnabled: recording.Enabled,
      content: {
        input: recording.RecordRunInput,
        toolPayloads: recording.RecordToolPayloads,
        sensitive: observability.Enabled && observability.PersistSpans && observability.RecordSensitiveData,
      },
      maxRequestBytes: Host.Traces.MaxRequestBytes,
      now: deps.storeClock.now,
    }),
    started(): void {
      if (recording.Enabled) spans.start(Host.Traces.Enabled);
    },
    close: spans.stop,
  };
};
