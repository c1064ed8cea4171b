import process from 'node:process';
import { AcpError } from '../../contract/errors.ts';
import { ok } from '../../contract/operation.ts';
import { providerConnections } from '../../core/config/provider-connections.ts';
import type { Config } from '../../core/config/schema.ts';
import type { CallContext, Handlers } from '../../core/context.ts';
import { isoTime } from '../../core/iso-time.ts';
import { version } from '../../core/version.ts';
import type { diagnosticsOperations } from './diagnostics.operations.ts';
import type { DiagnosticsReport } from './diagnostics.schema.ts';
import type { StoreSharing } from './store-sharing.ts';

export interface DiagnosticsDeps {
  readonly config: Config;
  readonly instanceId: string;
  readonly lifecycle: { readonly draining: boolean };
  readonly store: {
    readonly provider: DiagnosticsReport['persistenceProvider'];
    readonly pending: readonly string[];
    /** Null: no other process has it. */
    readonly sharing: StoreSharing | null;
    probe(): Promise<void>;
  };
  readonly jobs: { readonly enabled: boolean; active(): number };
  /** From the health cache: nobody is asked. */
  readonly modelProviders: () => DiagnosticsReport['modelProviders'];
  readonly toolCount: () => number;
  /** Agents that the caller's tenant sees. */
  readonly countAgents: (context: CallContext) => Promise<number>;
  readonly modules: readonly { readonly path: string; readonly registered: readonly string[] }[];
  readonly now: () => number;
}

/** Keys whose values are secrets: whether each has one, never what it is. */
const configuration = (config: Config): DiagnosticsReport['configuration'] => {
  const entry = (key: string, value: string | null, hint: string) => ({
    key,
    resolved: value !== null && value !== '',
    hint: value !== null && value !== '' ? null : hint,
  });
  const hintOf = (key: string): string => {
    if (key.includes(':Compatible:')) return 'called without a credential';
    return key.endsWith(':AzureOpenAI')
      ? 'calls need a key, or a module with deploymentCredential'
      : 'calls need a key';
  };
  const providers = providerConnections(config).map(({ key, apiKey }) => entry(`${key}:ApiKey`, apiKey, hintOf(key)));
  return [entry('Host:AuthToken', config.Host.AuthToken, 'no shared token'), ...providers];
};

const replicaNow = (
  replica: ReturnType<StoreSharing['replica']>,
): NonNullable<DiagnosticsReport['storeSharing']>['readReplica'] =>
  replica === null ? null : { used: replica.isUsed, lagMs: replica.lagMs, reason: replica.reason };

const sharingNow = (sharing: StoreSharing | null): DiagnosticsReport['storeSharing'] =>
  sharing === null
    ? null
    : {
        hearsOthers: sharing.hearsOthers(),
        clockOffsetMs: sharing.clockOffsetMs(),
        clockOff: sharing.isClockOff(),
        staleState: [...sharing.staleState()],
        missingPartitions: [...sharing.missingPartitions()],
        readReplica: replicaNow(sharing.replica()),
        heldFor: sharing.heldFor(),
      };

export const diagnosticsService = (deps: DiagnosticsDeps): Handlers<typeof diagnosticsOperations> => {
  const { Service, Host } = deps.config;
  const startedAt = isoTime(deps.now());
  const { RunRecording: recording } = Service;

  return {
    async get(context) {
      const isElsewhere = Host.Tenancy.Enabled && context.tenantId !== Service.DefaultTenantId;
      if (!Host.EnableDiagnosticsEndpoint)
        throw new AcpError(
          'not-found',
          'The diagnostics are off; the setting Host:EnableDiagnosticsEndpoint turns them on.',
        );
      if (isElsewhere) throw new AcpError('not-found', 'There is nothing at this path.');
      const [canConnect, agentCount] = await Promise.all([
        deps.store.probe().then(
          () => true,
          () => false,
        ),
        // A catalog that cannot be read is told as such.
        deps.countAgents(context).catch(() => null),
      ]);
      return ok({
        version,
        nodeVersion: process.versions.node,
        startedAt,
        instanceId: deps.instanceId,
        persistenceProvider: deps.store.provider,
        canConnect,
        migrationsUpToDate: deps.store.pending.length === 0,
        pendingMigrations: [...deps.store.pending],
        storeSharing: sharingNow(deps.store.sharing),
        knowledgeAvailable: false,
        worker: { enabled: deps.jobs.enabled, lanes: [...Service.Scheduling.Lanes], activeJobs: deps.jobs.active() },
        draining: deps.lifecycle.draining,
        modelProviders: deps.modelProviders(),
        configuration: configuration(deps.config),
        runRecording: {
          enabled: recording.Enabled,
          recordMessageDeltas: recording.RecordMessageDeltas,
          recordToolPayloads: recording.RecordToolPayloads,
          recordReasoningDeltas: recording.RecordReasoningDeltas,
          recordRunInput: recording.RecordRunInput,
          maxPayloadLength: recording.MaxPayloadLength,
        },
        consoleEmbedded: false,
        toolCount: deps.toolCount(),
        agentCount,
        // A definition of the host's code wins over a stored one of the same name.
        agentSources: [
          { name: 'code', priority: 1 },
          { name: 'database', priority: 0 },
        ],
        modules: deps.modules.map(({ path, registered }) => ({ path, loaded: true, registered: [...registered] })),
      });
    },
  };
};
