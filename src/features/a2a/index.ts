import type { Clock, Timer } from '../../core/clock.ts';
import type { Config } from '../../core/config/index.ts';
import type { Handlers } from '../../core/context.ts';
import type { Logger } from '../../core/logger.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { Storage } from '../../db/storage.ts';
import type { AttachmentUploads } from '../attachments/index.ts';
import type { Exposure } from '../exposure/index.ts';
import type { RunRecords } from '../runs/index.ts';
import type { a2aOperations } from './a2a.operations.ts';
import { a2aService } from './a2a.service.ts';
import { createA2ACalls } from './a2a-calls.ts';
import { a2aMessageStore } from './a2a-messages.store.ts';
import { a2aTaskStore } from './a2a-tasks.store.ts';
import { createA2ATelemetry } from './a2a-telemetry.ts';
import { createSendMessage, type SendMessageDeps } from './send-message.ts';
import { createTaskMethods, type TaskMethodDeps } from './task-methods.ts';
import { createTaskStreams } from './task-streams.ts';
import { createTaskView, type TaskViewDeps } from './task-view.ts';

export interface A2ADeps {
  readonly config: Config;
  readonly storage: Storage;
  readonly exposure: Exposure;
  readonly records: Pick<RunRecords, 'get' | 'packs' | 'recordedInput'>;
  readonly events: TaskMethodDeps['events'];
  readonly attachments: {
    readonly handlers: AttachmentUploads;
    readonly ofRun: TaskViewDeps['filesOf'];
  };
  readonly telemetry: Telemetry;
  readonly clock: Clock;
  /** Of what processes that share the store agree on. */
  readonly storeClock: Clock;
  readonly log: Pick<Logger, 'error'>;
  readonly newId: () => string;
}

const forgetEveryMs = 600_000;
// A clock that is set forward by mistake, and back again, frees no id for good.
const forgottenAfterMs = 7_200_000;

/** Files of messages, by the rules for those that callers upload. */
const messageFiles = ({ upload, remove }: A2ADeps['attachments']['handlers']): SendMessageDeps['files'] => ({
  async keep(context, sessionId, file) {
    const { body } = await upload(context, { params: {}, query: { sessionId }, headers: {}, body: undefined, file });
    return body.id;
  },
  async remove(context, id) {
    await remove(context, { params: { id }, query: {}, headers: {}, body: undefined });
  },
});

/** Agents for other agents: cards to find them, and tasks that their messages make. */
export const a2aFeature = (deps: A2ADeps) => {
  const { config, storage, exposure, records, clock, storeClock, log } = deps;
  const { Service, Host } = config;
  const { A2A } = Host;
  const store = storage.stores(a2aMessageStore);
  const telemetry = createA2ATelemetry(deps.telemetry);
  const allowedMediaTypes = Service.Attachments.AllowedMediaTypes;
  const view = createTaskView({ records, filesOf: deps.attachments.ofRun, messages: store });
  const methods = createTaskMethods({
    send: createSendMessage({
      store,
      runs: exposure.runs,
      runOf: records.get,
      files: messageFiles(deps.attachments.handlers),
      allowedMediaTypes,
      clock: storeClock,
      newId: deps.newId,
    }),
    view,
    tasks: storage.stores(a2aTaskStore),
    runs: exposure.runs,
    runOf: records.get,
    events: deps.events,
    clock,
    maxWaitMs: A2A.MaxWait,
  });
  const streams = createTaskStreams({ events: deps.events, files: view.files, counted: telemetry.streams });
  const { Provider: provider } = A2A;
  const handlers: Handlers<typeof a2aOperations> = a2aService({
    agents: exposure.agents,
    runs: exposure.runs,
    calls: createA2ACalls(methods),
    streams,
    telemetry,
    settings: {
      publicBaseUrl: A2A.PublicBaseUrl,
      listenUrl: Host.Url,
      prefix: Host.Prefix,
      path: A2A.Path,
      maxRequestBytes: A2A.MaxRequestBytes,
      publicCards: A2A.PublicCards,
      tenantHeader: Host.Tenancy.AllowHeaderResolution ? Host.Tenancy.HeaderName : null,
      legacy: A2A.LegacyCompat,
      provider: provider === null ? null : { organization: provider.Organization, url: provider.Url },
      issuer: Host.Oidc.Issuer,
      allowedMediaTypes,
      records: Service.RunRecording.Enabled,
    },
    log,
  });
  let forgetting: Timer | null = null;
  const forget = (): Promise<void> =>
    store
      .forget(storeClock.now() - forgottenAfterMs)
      // The next round tries again; until then they only take space.
      .catch((error: unknown) => log.error({ error }, 'Ids of messages that have lapsed could not be removed'));
  return {
    handlers,
    /** Agents of the allowlist that may not be offered, each as a sentence; those that are not there are told to the operator. */
    async hindrances(): Promise<readonly string[]> {
      if (A2A.Agents.length === 0) return [];
      const hindered = await exposure.agents.hindered(Service.DefaultTenantId);
      if (hindered.length === 0) await exposure.agents.warn(Service.DefaultTenantId);
      return hindered.map(
        ({ agent, reason }) => `agents in whose runs nobody has to be asked; of "${agent}", ${reason}`,
      );
    },
    started(): void {
      forgetting = storeClock.every(forgetEveryMs, forget);
    },
    draining: streams.draining,
    close(): void {
      forgetting?.stop();
    },
  };
};
