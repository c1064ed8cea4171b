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
const target = Type.String({ description: `Case-insensitive: ${retentionTargets.join(', ')}` });
const ofTarget = Type.Object({ target });
const oneTarget = { target: Type.Optional(target) };

export const retentionOperations = defineOperations({
  list: {
    ...read,
    path: '/api/retention',
    summary: 'List the stored policies, by target',
    description:
      'A target without a stored policy follows the configuration. Each entry specifies which rows are removed and whether they are archived.',
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
    summary: 'Count the rows that a sweep would remove now',
    description: 'Nothing is removed. The count is for this moment, by the stored policy or the configured default.',
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
      'The sweep is a job that works in small transactions during normal operation. The history shows its outcome.',
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
    description: 'Requested and scheduled sweeps are in one list, each with the number of rows that it removed.',
    query: Type.Object({ ...oneTarget, ...pagingQuery }),
    responses: { 200: Type.Array(RetentionRun) },
    errors: ['unknown-retention-target'],
    cli: { columns: ['startedAt', 'target', 'trigger', 'deletedRows', 'archivedRows', 'completedAt', 'error'] },
  },
  get: {
    ...read,
    path: '/api/retention/{target}',
    summary: 'Get the stored policy of a target',
    description: 'Returns only a saved policy, not the configured default of the target.',
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
      'The next sweep of the target follows the policy. Rows that are too old by then are removed; the policy can archive them first.',
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
    summary: 'Delete the policy of a target; the configured default applies again',
    description: 'Removed rows are not restored; the next sweep follows the configuration.',
    params: ofTarget,
    responses: { 204: null },
    errors: ['unknown-retention-target', 'retention-policy-not-found'],
    audit: { action: 'retention.delete', entity: 'retention', mode: 'noted' },
    cli: { command: 'retention policies delete', done: 'Deleted the policy of {target}.' },
  },
});
