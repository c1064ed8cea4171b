import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { pagingQuery } from '../../contract/schema.ts';
import {
  RetentionPolicy,
  RetentionPolicySaveRequest,
  RetentionPreview,
  RetentionRun,
  RetentionRunTriggerResponse,
  retentionTargets,
} from './retention.schema.ts';

const read = { tag: 'Retention', role: 'Reader', scope: 'PlatformRead', method: 'GET' } as const;
const write = { tag: 'Retention', role: 'Admin', scope: 'PlatformAdmin' } as const;

// Not an enumeration: an unknown name is answered with the list of valid ones.
const target = Type.String({ description: `In any case: ${retentionTargets.join(', ')}` });
const ofTarget = Type.Object({ target });
const oneTarget = { target: Type.Optional(target) };

export const retentionOperations = defineOperations({
  list: {
    ...read,
    path: '/api/retention',
    summary: 'List the stored policies, by target',
    responses: { 200: Type.Array(RetentionPolicy) },
    errors: [],
    cli: {
      command: 'retention policies list',
      columns: ['target', 'maxAgeDays', 'maxRows', 'archive', 'enabled', 'updatedAt'],
    },
  },
  preview: {
    ...read,
    path: '/api/retention/preview',
    summary: 'Count what a sweep would remove now',
    query: Type.Object(oneTarget),
    responses: { 200: Type.Array(RetentionPreview) },
    errors: ['unknown-retention-target', 'persistent-store-required'],
    cli: { columns: ['target', 'source', 'maxAgeDays', 'maxRows', 'archive', 'enabled', 'cutoff', 'matchingRows'] },
  },
  run: {
    ...write,
    method: 'POST',
    path: '/api/retention/run',
    summary: 'Queue a sweep of one target, or of all that have a policy',
    query: Type.Object(oneTarget),
    responses: { 200: RetentionRunTriggerResponse },
    errors: [
      'unknown-retention-target',
      'retention-policy-not-found',
      'persistent-store-required',
      'scheduling-disabled',
      'draining',
    ],
    audit: 'retention.run',
  },
  history: {
    ...read,
    path: '/api/retention/history',
    summary: 'List sweeps, newest first',
    query: Type.Object({ ...oneTarget, ...pagingQuery }),
    responses: { 200: Type.Array(RetentionRun) },
    errors: ['unknown-retention-target'],
    cli: { columns: ['startedAt', 'target', 'trigger', 'deletedRows', 'archivedRows', 'completedAt', 'error'] },
  },
  get: {
    ...read,
    path: '/api/retention/{target}',
    summary: 'Get the stored policy of a target',
    params: ofTarget,
    responses: { 200: RetentionPolicy },
    errors: ['unknown-retention-target', 'retention-policy-not-found'],
    cli: { command: 'retention policies get' },
  },
  save: {
    ...write,
    method: 'PUT',
    path: '/api/retention/{target}',
    summary: 'Create or replace the policy of a target; deletes nothing by itself',
    params: ofTarget,
    body: RetentionPolicySaveRequest,
    responses: { 200: RetentionPolicy },
    errors: ['unknown-retention-target'],
    audit: 'retention.save',
    cli: { command: 'retention policies set' },
  },
  remove: {
    ...write,
    method: 'DELETE',
    path: '/api/retention/{target}',
    summary: 'Delete the policy of a target; the configured default counts again',
    params: ofTarget,
    responses: { 204: null },
    errors: ['unknown-retention-target', 'retention-policy-not-found'],
    audit: 'retention.delete',
    cli: { command: 'retention policies delete', done: 'Deleted the policy of {target}.' },
  },
});
