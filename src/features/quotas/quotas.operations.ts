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
    summary: 'List the quotas of the tenant, those of the whole tenant first',
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
      'One quota exists for each agent and period: saving it again replaces the limits. What was used in the current period counts at once.',
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
    summary: 'Delete a quota; what was used stays counted',
    description:
      'Runs are no longer held to the limit from the next one on. A new quota for the same period finds the counters as they are.',
    params: Type.Object({ id: Uuid }),
    responses: { 204: null },
    errors: ['not-found'],
    audit: { action: 'quota.delete', entity: 'quota', mode: 'noted' },
    cli: { command: 'quotas delete', done: 'Deleted quota {id}.' },
  },
  usage: {
    ...read,
    path: '/api/quotas/usage',
    summary: 'What was used in the current periods',
    description:
      'For each quota with a limit: what was used, what running runs hold, and what is left. The answer says when days and months begin anew, and in which time zone.',
    query: Type.Object({
      agentName: Type.Optional(Type.String({ description: 'Empty: the whole tenant only; default: everything' })),
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
      'Every counter is compared with the sum of the runs that it stands for, and each difference is listed. Nothing is changed.',
    responses: { 200: QuotaVerification },
    errors: ['run-recording-disabled'],
    cli: { handWritten: true },
  },
});
