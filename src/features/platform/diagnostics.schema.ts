import Type, { type Static } from 'typebox';
import { nullable, oneOf } from '../../contract/schema.ts';

const ProviderDiagnostic = Type.Object(
  {
    name: Type.String(),
    status: oneOf(['Unknown', 'Healthy', 'Degraded', 'Unhealthy']),
    circuitOpen: Type.Boolean(),
  },
  { title: 'ProviderDiagnostic' },
);

const ConfigurationDiagnostic = Type.Object(
  { key: Type.String(), resolved: Type.Boolean(), hint: nullable(Type.String()) },
  { title: 'ConfigurationDiagnostic' },
);

export const DiagnosticsReport = Type.Object(
  {
    version: Type.String(),
    nodeVersion: Type.String(),
    startedAt: Type.String({ format: 'date-time' }),
    instanceId: Type.String(),
    persistenceProvider: oneOf(['Sqlite', 'Postgres', 'Memory']),
    canConnect: Type.Boolean(),
    migrationsUpToDate: Type.Boolean(),
    pendingMigrations: Type.Array(Type.String()),
    storeSharing: nullable(
      Type.Object({
        hearsOthers: Type.Boolean({
          description:
            'False: this process sees changes of other processes only by polling the store, and therefore later',
        }),
        clockOffsetMs: Type.Integer({
          description: 'Milliseconds by which the clock of this process is ahead of the store’s',
        }),
        clockOff: Type.Boolean({ description: 'True if the clocks differ by more than a second' }),
        staleState: Type.Array(Type.String(), {
          description:
            'Cached data of the store that could not be refreshed in time; requests that need it are rejected',
        }),
        missingPartitions: Type.Array(Type.String(), {
          description: 'Current partitions that could not be created; their rows are in the default partitions',
        }),
        readReplica: nullable(
          Type.Object({
            used: Type.Boolean({ description: 'False: history is read from the primary server' }),
            lagMs: nullable(Type.Integer({ description: 'Maximum lag in milliseconds; null: not reported' })),
            reason: nullable(
              Type.String({ description: 'Reason why it is not used; null: it is used, or was not compared yet' }),
            ),
          }),
          { description: 'Standby server from which history is read. Null: none is configured' },
        ),
        heldFor: nullable(
          Type.String({
            description: 'Store move that limits this process to reads until its restart, and the time since when',
          }),
        ),
      }),
      { description: 'State of this process among the processes that share the store. Null: the store is not shared' },
    ),
    knowledgeAvailable: Type.Boolean(),
    worker: Type.Object({
      enabled: Type.Boolean(),
      lanes: Type.Array(Type.String(), { description: 'Empty: all' }),
      activeJobs: Type.Integer(),
    }),
    draining: Type.Boolean(),
    modelProviders: Type.Array(ProviderDiagnostic),
    configuration: Type.Array(ConfigurationDiagnostic),
    runRecording: Type.Object({
      enabled: Type.Boolean(),
      recordMessageDeltas: Type.Boolean(),
      recordToolPayloads: Type.Boolean(),
      recordReasoningDeltas: Type.Boolean(),
      recordRunInput: Type.Boolean(),
      maxPayloadLength: Type.Integer(),
    }),
    consoleEmbedded: Type.Boolean(),
    toolCount: Type.Integer(),
    agentCount: nullable(Type.Integer({ description: 'Null: the catalog cannot be read' })),
    agentSources: Type.Array(Type.Object({ name: Type.String(), priority: Type.Integer() })),
    modules: Type.Array(
      Type.Object({ path: Type.String(), loaded: Type.Boolean(), registered: Type.Array(Type.String()) }),
    ),
  },
  { title: 'DiagnosticsReport' },
);
export type DiagnosticsReport = Static<typeof DiagnosticsReport>;
