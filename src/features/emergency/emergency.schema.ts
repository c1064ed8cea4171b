import Type, { type Static } from 'typebox';
import { closed, nullable, oneOf, runAgentPattern, Time, tenantPattern, Uuid } from '../../contract/schema.ts';

const stopScopes = ['All', 'Tenant', 'Agent'] as const;

const target = {
  scope: oneOf(stopScopes, { description: 'All: every agent of every tenant' }),
  tenantId: Type.Optional(
    nullable(Type.String({ pattern: tenantPattern }), {
      description: 'Tenant of the agents; default: the tenant of the caller. Not with scope All',
    }),
  ),
  agentName: Type.Optional(
    nullable(Type.String({ pattern: runAgentPattern }), {
      description: 'Required with scope Agent, and allowed only with it',
    }),
  ),
};

export const EmergencyResumeRequest = closed(target, { title: 'EmergencyResumeRequest' });
export type EmergencyResumeRequest = Static<typeof EmergencyResumeRequest>;

export const EmergencyStopRequest = closed(
  {
    ...target,
    reason: Type.Optional(
      nullable(Type.String({ minLength: 1, maxLength: 1024 }), {
        description: 'Stored with the stop and in the audit trail',
      }),
    ),
  },
  { title: 'EmergencyStopRequest' },
);
export type EmergencyStopRequest = Static<typeof EmergencyStopRequest>;

export const EmergencyStop = Type.Object(
  {
    id: Uuid,
    scope: oneOf(stopScopes),
    tenantId: nullable(Type.String(), { description: 'Null: every tenant' }),
    agentName: nullable(Type.String(), { description: 'Null: every agent' }),
    requestedByTenant: Type.String({ description: 'Tenant of the caller who requested the stop' }),
    reason: nullable(Type.String()),
    stoppedBy: nullable(Type.String()),
    stoppedAt: Time,
    resumedBy: nullable(Type.String()),
    resumedAt: nullable(Time, { description: 'Null: in force' }),
  },
  { title: 'EmergencyStop' },
);
export type EmergencyStop = Static<typeof EmergencyStop>;

const EmergencyEffect = Type.Object(
  {
    toolCallId: Type.String(),
    toolName: Type.String(),
    effect: Type.String({ description: '`Write`, `Destructive` or `External`; read-only calls are omitted' }),
    state: oneOf(['Landed', 'Failed', 'Unknown'], {
      description:
        'Landed: the tool had returned a result. Failed: the tool had returned an error. Unknown: the call was in progress or had timed out, so its effect is unknown. Calls that were rejected before the tool was called (arguments, permission, approval) are omitted',
    }),
    calledAt: Time,
  },
  { title: 'EmergencyEffect' },
);
export type EmergencyEffect = Static<typeof EmergencyEffect>;

const StoppedRun = Type.Object(
  {
    runId: Uuid,
    rootRunId: Uuid,
    tenantId: Type.String(),
    agentName: Type.String(),
    sessionId: nullable(Type.String()),
    ended: Type.Boolean({ description: 'False: the run was signaled to stop and had not ended before this response' }),
    effects: Type.Array(EmergencyEffect),
  },
  { title: 'StoppedRun' },
);
export type StoppedRun = Static<typeof StoppedRun>;

const HeldRun = Type.Object(
  { runId: Uuid, tenantId: Type.String(), agentName: Type.String(), createdAt: Time },
  { title: 'HeldRun' },
);

export const EmergencyStopResult = Type.Object(
  {
    stop: EmergencyStop,
    runs: Type.Array(StoppedRun, {
      description: 'Runs that were in progress on this instance, child runs with their callers',
    }),
    heldCount: Type.Integer({ minimum: 0, description: 'Queued runs that wait for the end of the stop' }),
    held: Type.Array(HeldRun, { description: 'The oldest of these runs, at most 1000' }),
  },
  { title: 'EmergencyStopResult' },
);
export type EmergencyStopResult = Static<typeof EmergencyStopResult>;

export const EmergencyResumeResult = Type.Object(
  {
    resumed: Type.Array(EmergencyStop),
    inForce: Type.Array(EmergencyStop, { description: 'Stops that still cover the requested scope' }),
  },
  { title: 'EmergencyResumeResult' },
);
