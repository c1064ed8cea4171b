import type { Clock, Timer } from '../../core/clock.ts';
import type { Config } from '../../core/config/index.ts';
import type { Handlers } from '../../core/context.ts';
import type { Logger } from '../../core/logger.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import { webhookScheme } from '../../core/webhook-schemes.ts';
import type { Storage } from '../../db/storage.ts';
import type { AuditLog } from '../audit/index.ts';
import { createTriggerCaller } from './trigger-caller.ts';
import { createTriggerCalls, type TriggerCallDeps } from './trigger-calls.ts';
import { createTriggerSecrets } from './trigger-secrets.ts';
import { createTriggerTelemetry } from './trigger-telemetry.ts';
import { createTriggerWindows } from './trigger-window.ts';
import type { triggerOperations } from './triggers.operations.ts';
import { triggerService } from './triggers.service.ts';
import { triggerStore } from './triggers.store.ts';

export interface TriggersDeps extends Pick<TriggerCallDeps, 'launch' | 'agentExists' | 'lifecycle' | 'prefix'> {
  readonly config: Config;
  readonly storage: Storage;
  readonly audit: Pick<AuditLog, 'change' | 'save'>;
  readonly telemetry: Telemetry;
  readonly log: Pick<Logger, 'warn' | 'error'>;
  /** Of what processes that share the store agree on. */
  readonly storeClock: Clock;
  readonly now: () => number;
  readonly newId: () => string;
}

const forgetEveryMs = 600_000;
// A clock that is set forward by mistake, and back again, frees no id for good.
const forgottenAfterMs = 7_200_000;

/** Calls from outside, signed by their senders, that start runs. */
export const triggersFeature = (deps: TriggersDeps) => {
  const { config, storage, storeClock: clock, log } = deps;
  const { Triggers, Webhooks, AsyncRun, Scheduling, RunRecording } = config.Service;
  const store = storage.stores(triggerStore);
  const secrets = createTriggerSecrets(config);
  const { now } = clock;
  const accept = createTriggerCalls({
    ...deps,
    store,
    callerOf: createTriggerCaller({ store, secrets, schemes: webhookScheme, config, log, now }),
    windows: createTriggerWindows(Triggers.PermitLimit, Triggers.Window, deps.now),
    telemetry: createTriggerTelemetry(deps.telemetry),
    settings: {
      maxBodyBytes: Triggers.MaxBodyBytes,
      toleranceMs: Webhooks.SignatureTolerance,
      explains: Triggers.ExplainRefusals,
      queues: AsyncRun.Enabled && Scheduling.Enabled,
      records: RunRecording.Enabled,
    },
    now,
  });
  let forgetting: Timer | null = null;
  const forget = (): Promise<void> =>
    store
      .forget(now() - forgottenAfterMs)
      // The next round tries again; until then they only take space.
      .catch((error: unknown) => log.error({ error }, 'Ids of accepted calls that have lapsed could not be removed'));
  const handlers: Handlers<typeof triggerOperations> = { ...triggerService({ ...deps, store, secrets }), accept };
  return {
    handlers,
    started(): void {
      forgetting = clock.every(forgetEveryMs, forget);
    },
    close(): void {
      forgetting?.stop();
    },
  };
};
