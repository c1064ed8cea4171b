import Type, { type Static } from 'typebox';
import { closed, type Json, JsonValue, Labels, nullable, oneOf, Time, Uuid } from '../../contract/schema.ts';
import { ToolApprovalPresentation } from '../../contract/tool-approval.ts';

export const approvalStatuses = ['Pending', 'Approved', 'Rejected', 'Expired'] as const;
export type ApprovalStatus = (typeof approvalStatuses)[number];

const undecrypted =
  'In a list null, too, where it cannot be decrypted; the approval by itself is 500 decryption-failed';
const absent = `Null where tool payloads are not recorded. ${undecrypted}`;

export const PendingApproval = Type.Object(
  {
    id: Uuid,
    tenantId: Type.String(),
    runId: Type.Unsafe<string>({ ...Uuid, description: 'Run that closed as AwaitingApproval' }),
    agentName: Type.String(),
    sessionId: Type.String(),
    requestId: Type.String({ description: "Id of the request in the run's events" }),
    inBand: Type.Boolean({
      description: "The run's own answer carries the request too: the session's next run may decide it as well",
    }),
    toolCallId: Type.String(),
    toolName: Type.String(),
    arguments: nullable(JsonValue, { description: absent }),
    presentation: nullable(ToolApprovalPresentation, { description: undecrypted }),
    status: oneOf(approvalStatuses),
    decidedBy: nullable(Type.String()),
    decidedAt: nullable(Time),
    reason: nullable(Type.String()),
    expiresAt: nullable(Time),
    continuationRunId: nullable(Uuid, {
      description:
        'Run that continues with the decision: the queued one, or the next run of the session that brought it',
    }),
    createdAt: Time,
  },
  { title: 'PendingApproval' },
);
export type PendingApproval = Static<typeof PendingApproval>;

export const ApprovalDecisionRequest = closed(
  {
    approved: Type.Boolean(),
    reason: Type.Optional(
      nullable(Type.String({ maxLength: 2000, description: 'Given to the model with a rejection' })),
    ),
  },
  { title: 'ApprovalDecisionRequest' },
);

export const conditionOperators = [
  'Equals',
  'NotEquals',
  'GreaterThan',
  'GreaterThanOrEqual',
  'LessThan',
  'LessThanOrEqual',
  'In',
  'NotIn',
] as const;
export type ConditionOperator = (typeof conditionOperators)[number];

export const ToolArgumentCondition = closed(
  {
    path: Type.String({ minLength: 1, maxLength: 256, description: 'Dotted names, such as customer.tier; 1 to 8' }),
    operator: oneOf(conditionOperators),
    value: Type.Unsafe<Json>({ description: 'A string, number or boolean; for In and NotIn a list of 1 to 100' }),
  },
  { title: 'ToolArgumentCondition' },
);
export type ToolArgumentCondition = Static<typeof ToolArgumentCondition>;

export const ToolApprovalRuleRequest = closed(
  {
    agentName: Type.Optional(nullable(Type.String({ maxLength: 128, description: 'Empty or null: all agents' }))),
    toolName: Type.String({ minLength: 1, maxLength: 256 }),
    argumentConditions: Type.Optional(
      Type.Array(ToolArgumentCondition, { maxItems: 16, description: 'All must hold; none: every call' }),
    ),
    labels: Type.Optional(Labels),
  },
  { title: 'ToolApprovalRuleRequest' },
);

export const ToolApprovalRule = Type.Object(
  {
    id: Uuid,
    tenantId: Type.String(),
    agentName: nullable(Type.String()),
    toolName: Type.String(),
    argumentsHash: nullable(
      Type.String({ description: 'Hex SHA-256 of the canonical arguments; from `remember` only' }),
    ),
    argumentConditions: Type.Array(ToolArgumentCondition),
    labels: Labels,
    createdBy: nullable(Type.String()),
    createdAt: Time,
  },
  { title: 'ToolApprovalRule' },
);
export type ToolApprovalRule = Static<typeof ToolApprovalRule>;
