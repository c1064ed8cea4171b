import Type, { type Static } from 'typebox';
import { closed, Labels, nullable, oneOf, Time, Uuid } from '../../contract/schema.ts';

export const retentionTargets = [
  'RunEvents',
  'ToolInvocations',
  'Spans',
  'Jobs',
  'WebhookDeliveries',
  'EvalCaseResults',
  'WorkflowCheckpoints',
  'SkillScriptGrants',
  'Attachments',
  'Sessions',
  'Conversations',
  'IdempotencyKeys',
  'RunInputs',
  'VoiceSessions',
  'RunScores',
  'DocumentEmbeddings',
  'Runs',
] as const;
export type RetentionTarget = (typeof retentionTargets)[number];

const Target = oneOf(retentionTargets);
const Rows = Type.Integer({ minimum: 0 });
const MaxAgeDays = nullable(Type.Integer({ minimum: 1, maximum: 36_500 }), {
  description: 'Rows older than this number of days are removed; null: no age limit',
});
const MaxRows = nullable(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }), {
  description: 'Number of newest rows that remain; null: no row limit',
});

export const RetentionPolicySaveRequest = closed(
  {
    maxAgeDays: Type.Optional(MaxAgeDays),
    maxRows: Type.Optional(MaxRows),
    archive: Type.Optional(Type.Boolean({ description: 'Rows are archived before they are deleted; default false' })),
    enabled: Type.Optional(Type.Boolean({ description: 'False pauses the target; default true' })),
    labels: Type.Optional(Labels),
  },
  { title: 'RetentionPolicySaveRequest' },
);
export type RetentionPolicySaveRequest = Static<typeof RetentionPolicySaveRequest>;

export const RetentionPolicy = Type.Object(
  {
    id: Uuid,
    tenantId: Type.String(),
    target: Target,
    maxAgeDays: MaxAgeDays,
    maxRows: MaxRows,
    archive: Type.Boolean(),
    enabled: Type.Boolean(),
    labels: Labels,
    createdAt: Time,
    updatedAt: Time,
  },
  { title: 'RetentionPolicy' },
);
export type RetentionPolicy = Static<typeof RetentionPolicy>;

export const RetentionPreview = Type.Object(
  {
    target: Target,
    source: oneOf(['Stored', 'Configuration', 'None'], { description: 'Source of the policy in force' }),
    maxAgeDays: MaxAgeDays,
    maxRows: MaxRows,
    archive: Type.Boolean(),
    enabled: Type.Boolean({ description: 'False also without a policy' }),
    cutoff: nullable(Time, { description: 'Older rows are removed; null without an age limit' }),
    matchingRows: Rows,
  },
  { title: 'RetentionPreview' },
);
export type RetentionPreview = Static<typeof RetentionPreview>;

export const RetentionRunTriggerResponse = Type.Object(
  { jobId: Uuid, target: oneOf([...retentionTargets, '*'] as const, { description: '`*`: all targets' }) },
  { title: 'RetentionRunTriggerResponse' },
);
export type RetentionRunTriggerResponse = Static<typeof RetentionRunTriggerResponse>;

export const RetentionRun = Type.Object(
  {
    id: Uuid,
    tenantId: Type.String(),
    target: Target,
    jobId: Uuid,
    trigger: oneOf(['Schedule', 'Manual']),
    deletedRows: Rows,
    archivedRows: Rows,
    startedAt: Time,
    completedAt: nullable(Time, { description: 'Null while it runs' }),
    error: nullable(Type.String({ description: 'Such as `archive-sink-missing`, `sink-failed`, `canceled`' })),
  },
  { title: 'RetentionRun' },
);
export type RetentionRun = Static<typeof RetentionRun>;
