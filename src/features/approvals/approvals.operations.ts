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
      'Every call that waits is listed, whatever started its run; with `inBand` the next run of its session may decide it as well. What is decided here is the call with the arguments that the entry shows.',
    query: Type.Object({ agentName: Type.Optional(Type.String()), ...pagingQuery }),
    responses: { 200: Type.Array(PendingApproval) },
    errors: ['run-not-allowed'],
    cli: { columns: ['id', 'agentName', 'toolName', 'arguments', 'presentation.message', 'createdAt', 'expiresAt'] },
  },
  get: {
    ...read,
    path: '/api/approvals/{id}',
    summary: 'Show one approval, in every state',
    description: 'A decided approval tells who decided it, when and why, and which run goes on with it.',
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
      'The first decision counts, whether it comes here or with the next run of the session. When the last open call of the run is decided, a further run goes on with all of them, and the answer names it.',
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
      'A rule approves calls of one tool by one agent, of every call or of those whose arguments fit its conditions.',
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
      'From then on matching calls run without being asked about, and the log of the run says which rule approved them. A rule can be bound to arguments.',
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
    description: 'Calls that the rule has approved already are not taken back; the next one is asked about again.',
    params: Type.Object({ ruleId: Uuid }),
    responses: { 204: null },
    errors: ['not-found', 'audit-unavailable'],
    audit: { action: 'approval-rule.delete', entity: 'approval-rule', mode: 'fail-closed' },
    cli: { command: 'approvals rules remove', done: 'Removed standing rule {ruleId}.' },
  },
});
