import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { SaveQuery } from '../../contract/save-query.ts';
import { oneOf, Uuid } from '../../contract/schema.ts';
import {
  QuotaDefinition,
  QuotaSaveRequest,
  QuotaUsageResponse,
  QuotaVerification,
  quotaPeriods,
} from './quotas.schema.ts';

const read = { tag: 'Quotas', role: 'Reader', scope: 'PlatformRead', method: 'GET' } as const;
const write = { tag: 'Quotas', role: 'Admin', scope: 'PlatformAdmin' } as const;

export const quotaOperations = defineOperations({
  list: {
    ...read,
    path: '/api/quotas',
    summary: 'List the quotas of the tenant, tenant-wide ones first',
    description: 'A quota limits runs, tokens or cost of the tenant, or of one agent, by day or month.',
    responses: { 200: Type.Array(QuotaDefinition) },
    errors: [],
    cli: { columns: ['id', 'agentName', 'period', 'maxRuns', 'maxTokens', 'maxCost', 'enabled'] },
  },
  save: {
    ...write,
    method: 'PUT',
    path: '/api/quotas',
    summary: 'Set the quota of the tenant, or of an agent, for a period',
    description:
      'Each agent and period has one quota; saving it again replaces the limits. Usage in the current period counts at once.',
    query: SaveQuery,
    body: QuotaSaveRequest,
    responses: { 200: QuotaDefinition },
    errors: ['version-conflict'],
    audit: { action: 'quota.save', entity: 'quota', mode: 'noted' },
    cli: { handWritten: true },
  },
  remove: {
    ...write,
    method: 'DELETE',
    path: '/api/quotas/{id}',
    summary: 'Delete a quota; its usage counters remain',
    description:
      'The limit no longer applies from the next run on. A new quota for the same period continues with the same counters.',
    params: Type.Object({ id: Uuid }),
    responses: { 204: null },
    errors: ['not-found'],
    audit: { action: 'quota.delete', entity: 'quota', mode: 'noted' },
    cli: { command: 'quotas delete', done: 'Deleted quota {id}.' },
  },
  usage: {
    ...read,
    path: '/api/quotas/usage',
    summary: 'Show usage in the current periods',
    description:
      'For each quota with a limit: usage, reservations of running runs, and the remaining amount. The response shows when the next day and month begin, and in which time zone.',
    query: Type.Object({
      agentName: Type.Optional(Type.String({ description: 'Empty: tenant-wide quotas only; default: all quotas' })),
      period: Type.Optional(oneOf(quotaPeriods)),
    }),
    responses: { 200: QuotaUsageResponse },
    errors: [],
    cli: { handWritten: true },
  },
  verify: {
    ...read,
    path: '/api/quotas/verification',
    summary: 'Compare the counters with the recorded runs',
    description:
      'Each counter is compared with the sum of the runs that it covers, and each difference is listed. Nothing is changed.',
    responses: { 200: QuotaVerification },
    errors: ['run-recording-disabled'],
    cli: { handWritten: true },
  },
});
