import Type, { type Static } from 'typebox';
import { closed, nullable, oneOf, runAgentPattern, Time, tenantPattern, Uuid } from '../../contract/schema.ts';

const stopScopes = ['All', 'Tenant', 'Agent'] as const;

const target = {
  scope: oneOf(stopScopes, { description: 'All: every agent of every tenant' }),
  tenantId: Type.Optional(
    nullable(Type.String({ pattern: tenantPattern }), {
      description: 'Whose agents; default: the tenant of the caller. Not with scope All',
    }),
  ),
  agentName: Type.Optional(
    nullable(Type.String({ pattern: runAgentPattern }), { description: 'With scope Agent, and only with it' }),
  ),
};

export const EmergencyResumeRequest = closed(target, { title: 'EmergencyResumeRequest' });
export type EmergencyResumeRequest = Static<typeof EmergencyResumeRequest>;

export const EmergencyStopRequest = closed(
  {
    ...target,
    reason: Type.Optional(
      nullable(Type.String({ minLength: 1, maxLength: 1024 }), { description: 'Kept with the stop and audited' }),
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
    requestedByTenant: Type.String({ description: 'The tenant of the caller who stopped' }),
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
    effect: Type.String({ description: '`Write`, `Destructive` or `External`; calls that only read are left out' }),
    state: oneOf(['Landed', 'Failed', 'Unknown'], {
      description:
        'Landed: the tool had answered. Failed: it had answered with an error. Unknown: it was under way, or had not answered in time; nobody can tell from here. Calls that were refused before the tool was called (arguments, permission, approval) are left out',
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
    ended: Type.Boolean({ description: 'False: it was told to stop and had not ended when this was answered' }),
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
    runs: Type.Array(StoppedRun, { description: 'What was in flight on this instance, children with their callers' }),
    heldCount: Type.Integer({ minimum: 0, description: 'Queued runs that wait for the end of the stop' }),
    held: Type.Array(HeldRun, { description: 'The oldest of them, at most 1000' }),
  },
  { title: 'EmergencyStopResult' },
);
export type EmergencyStopResult = Static<typeof EmergencyStopResult>;

export const EmergencyResumeResult = Type.Object(
  {
    resumed: Type.Array(EmergencyStop),
    inForce: Type.Array(EmergencyStop, { description: 'Stops that still cover what was named' }),
  },
  { title: 'EmergencyResumeResult' },
);
