import Type, { type Static } from 'typebox';
import { closed, type Json, JsonValue, Labels, nullable, oneOf, Time, Uuid } from '../../contract/schema.ts';
import { ToolApprovalPresentation } from '../../contract/tool-approval.ts';

export const approvalStatuses = ['Pending', 'Approved', 'Rejected', 'Expired'] as const;
export type ApprovalStatus = (typeof approvalStatuses)[number];

const undecrypted =
  'Also null in a list if it cannot be decrypted; a request for that approval gets 500 decryption-failed';
const absent = `Null if tool payloads are not recorded. ${undecrypted}`;

export const PendingApproval = Type.Object(
  {
    id: Uuid,
    tenantId: Type.String(),
    runId: Type.Unsafe<string>({ ...Uuid, description: 'Run that ended as AwaitingApproval' }),
    agentName: Type.String(),
    sessionId: Type.String(),
    requestId: Type.String({ description: "ID of the request in the run's events" }),
    inBand: Type.Boolean({
      description:
        'The response of the run contains the request as well: the next run of the session may also decide it',
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
      nullable(Type.String({ maxLength: 2000, description: 'Sent to the model with a rejection' })),
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
    path: Type.String({
      minLength: 1,
      maxLength: 256,
      description: '1 to 8 property names, joined by dots, such as customer.tier',
    }),
    operator: oneOf(conditionOperators),
    value: Type.Unsafe<Json>({
      description: 'A string of at most 16384 characters, a number or a boolean; for In and NotIn a list of 1 to 100',
    }),
  },
  { title: 'ToolArgumentCondition' },
);
export type ToolArgumentCondition = Static<typeof ToolArgumentCondition>;

export const ToolApprovalRuleRequest = closed(
  {
    agentName: Type.Optional(nullable(Type.String({ maxLength: 128, description: 'Empty or null: all agents' }))),
    toolName: Type.String({ minLength: 1, maxLength: 256 }),
    argumentConditions: Type.Optional(
      Type.Array(ToolArgumentCondition, {
        maxItems: 16,
        description: 'Conditions that must all hold; none: every call',
      }),
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
