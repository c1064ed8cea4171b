import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { SaveQuery } from '../../contract/save-query.ts';
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
    description:
      'A target without a stored policy follows the configuration; each entry says after how long rows are removed and whether they are archived.',
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
    description: 'Nothing is removed. The count is of this moment, for the stored policy or the configured default.',
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
    description:
      'The sweep is a job of the queue, in small transactions beside the normal work. Its outcome is in the history.',
    query: Type.Object(oneTarget),
    responses: { 200: RetentionRunTriggerResponse },
    errors: [
      'unknown-retention-target',
      'retention-policy-not-found',
      'persistent-store-required',
      'scheduling-disabled',
      'draining',
    ],
    audit: { action: 'retention.run', entity: 'retention', mode: 'noted' },
  },
  history: {
    ...read,
    path: '/api/retention/history',
    summary: 'List sweeps, newest first',
    description: 'Sweeps that were asked for and those of the schedule are in one list, with what each has removed.',
    query: Type.Object({ ...oneTarget, ...pagingQuery }),
    responses: { 200: Type.Array(RetentionRun) },
    errors: ['unknown-retention-target'],
    cli: { columns: ['startedAt', 'target', 'trigger', 'deletedRows', 'archivedRows', 'completedAt', 'error'] },
  },
  get: {
    ...read,
    path: '/api/retention/{target}',
    summary: 'Get the stored policy of a target',
    description: 'Only a policy that was saved is found here; the configured default of the target is not.',
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
    description:
      'The next sweep of the target follows the policy. Rows that are too old by then are removed, or archived first where the policy says so.',
    params: ofTarget,
    query: SaveQuery,
    body: RetentionPolicySaveRequest,
    responses: { 200: RetentionPolicy },
    errors: ['unknown-retention-target', 'version-conflict'],
    audit: { action: 'retention.save', entity: 'retention', mode: 'noted' },
    cli: { command: 'retention policies set' },
  },
  remove: {
    ...write,
    method: 'DELETE',
    path: '/api/retention/{target}',
    summary: 'Delete the policy of a target; the configured default counts again',
    description: 'Nothing that was removed comes back; the next sweep follows the configuration.',
    params: ofTarget,
    responses: { 204: null },
    errors: ['unknown-retention-target', 'retention-policy-not-found'],
    audit: { action: 'retention.delete', entity: 'retention', mode: 'noted' },
    cli: { command: 'retention policies delete', done: 'Deleted the policy of {target}.' },
  },
});
