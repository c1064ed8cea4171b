import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { DryRunQuery } from '../../contract/save-query.ts';
import { pagingQuery, Uuid } from '../../contract/schema.ts';
import {
  ApprovalDecisionRequest,
  PendingApproval,
  ToolApprovalRule,
  ToolApprovalRuleRequest,
} from './approvals.schema.ts';

const tag = 'Approvals';
const read = { tag, role: 'Reader', scope: 'RunsRead', method: 'GET' } as const;
const manage = { tag, role: 'Admin', scope: 'PlatformAdmin' } as const;

export const approvalOperations = defineOperations({
  list: {
    ...read,
    path: '/api/approvals/pending',
    summary: 'List the tool calls that wait for a decision, newest first',
    description:
      'The list includes calls from runs of every origin; with `inBand` the next run of the session may decide the call as well. A decision applies to the call with the arguments that the entry shows.',
    query: Type.Object({ agentName: Type.Optional(Type.String()), ...pagingQuery }),
    responses: { 200: Type.Array(PendingApproval) },
    errors: ['run-not-allowed'],
    cli: { columns: ['id', 'agentName', 'toolName', 'arguments', 'presentation.message', 'createdAt', 'expiresAt'] },
  },
  get: {
    ...read,
    path: '/api/approvals/{id}',
    summary: 'Show one approval in any state',
    description: 'A decided approval shows who decided it, when and why, and the run that continues with the decision.',
    params: Type.Object({ id: Uuid }),
    responses: { 200: PendingApproval },
    errors: ['not-found'],
    cli: { command: 'approvals show' },
  },
  decide: {
    tag,
    role: 'Operator',
    scope: 'RunsWrite',
    method: 'POST',
    path: '/api/approvals/{id}/decide',
    summary: 'Approve or reject a waiting tool call',
    description:
      'The first decision counts, made by this operation or by the next run of the session. When the last open call of the run is decided, another run continues with all decisions; the response names it.',
    params: Type.Object({ id: Uuid }),
    body: ApprovalDecisionRequest,
    responses: { 200: PendingApproval },
    errors: [
      'not-found',
      'approval-already-decided',
      'approval-expired',
      'content-blocked',
      'scheduling-disabled',
      'audit-unavailable',
    ],
    audit: { action: 'approval.decide', entity: 'approval', mode: 'fail-closed' },
    cli: { handWritten: true },
  },
});

export const approvalRuleOperations = defineOperations({
  list: {
    tag,
    role: 'Reader',
    scope: 'PlatformRead',
    method: 'GET',
    path: '/api/approvals/rules',
    summary: 'List the standing rules that approve calls in advance, newest first',
    description:
      'A rule approves calls of one tool by one agent or all agents: every call, or those whose arguments match its conditions.',
    query: Type.Object({
      agentName: Type.Optional(Type.String({ description: 'Empty: the rules for all agents' })),
      toolName: Type.Optional(Type.String()),
    }),
    responses: { 200: Type.Array(ToolApprovalRule) },
    errors: [],
    cli: {
      command: 'approvals rules list',
      columns: ['id', 'agentName', 'toolName', 'argumentConditions', 'argumentsHash', 'createdBy', 'createdAt'],
    },
  },
  create: {
    ...manage,
    method: 'POST',
    path: '/api/approvals/rules',
    summary: 'Approve calls of a tool in advance',
    description:
      'Matching calls then execute without a decision, and the log of the run names the rule that approved them. A rule can be limited to certain arguments.',
    query: DryRunQuery,
    body: ToolApprovalRuleRequest,
    responses: { 201: ToolApprovalRule, 200: ToolApprovalRule },
    errors: ['audit-unavailable'],
    audit: { action: 'approval-rule.create', entity: 'approval-rule', mode: 'fail-closed' },
    cli: { command: 'approvals rules add' },
  },
  remove: {
    ...manage,
    method: 'DELETE',
    path: '/api/approvals/rules/{ruleId}',
    summary: 'Remove a standing rule',
    description:
      'Calls that the rule already approved are not affected; the next matching call needs a decision again.',
    params: Type.Object({ ruleId: Uuid }),
    responses: { 204: null },
    errors: ['not-found', 'audit-unavailable'],
    audit: { action: 'approval-rule.delete', entity: 'approval-rule', mode: 'fail-closed' },
    cli: { command: 'approvals rules remove', done: 'Removed standing rule {ruleId}.' },
  },
});
