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
          description: 'False: what other processes change is seen by asking the store alone, and so later',
        }),
        clockOffsetMs: Type.Integer({ description: 'How far the clock of this process is ahead of the store’s' }),
        clockOff: Type.Boolean({ description: 'Further than a second' }),
        staleState: Type.Array(Type.String(), {
          description: 'Copies of what the store says that could not be read again in time; what needs them is refused',
        }),
        missingPartitions: Type.Array(Type.String(), {
          description: 'Partitions of the present that could not be made; their rows are in the default ones',
        }),
        readReplica: nullable(
          Type.Object({
            used: Type.Boolean({ description: 'False: history is read from the server itself' }),
            lagMs: nullable(Type.Integer({ description: 'How far it is behind at most; null: it did not say' })),
            reason: nullable(Type.String({ description: 'Why it is not used; null: it is, or was not compared yet' })),
          }),
          { description: 'The standby that history is read from. Null: none is configured' },
        ),
        heldFor: nullable(
          Type.String({
            description:
              'A move has asked this process to answer reads only, until it is started again: which one, and since when',
          }),
        ),
      }),
      { description: 'How this process does beside the others of its store. Null: it has the store to itself' },
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
