import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { DataSubjectErasureResult } from './data-subjects.schema.ts';

const shared = { tag: 'Data subjects', role: 'Admin', scope: 'PlatformAdmin' } as const;
const subject = Type.Object({
  id: Type.String({ minLength: 1, maxLength: 256, description: 'Any name or id by which the host knows the person' }),
});

export const dataSubjectOperations = defineOperations({
  export: {
    ...shared,
    method: 'GET',
    path: '/api/data-subjects/{id}/export',
    summary: 'Export all stored data of one person',
    description:
      'A module of the host determines the data that belong to the person. The response is streamed, and the audit trail records the export.',
    params: subject,
    download: 'One JSON document with a list for each kind of data; attachments without their bytes',
    responses: {},
    errors: ['data-subject-resolver-missing', 'data-subject-resolver-failed', 'audit-unavailable'],
    audit: { action: 'data-subject.export', entity: 'data-subject', mode: 'fail-closed' },
    cli: { handWritten: true },
  },
  erase: {
    ...shared,
    method: 'DELETE',
    path: '/api/data-subjects/{id}',
    summary: 'Count or delete all stored data of one person',
    description:
      'By default it only counts; `dryRun=false` deletes everything in one transaction. While a run of the person is in progress, the deletion is rejected.',
    params: subject,
    query: Type.Object({
      dryRun: Type.Optional(Type.Boolean({ description: 'Default true: only counts; false deletes' })),
    }),
    responses: { 200: DataSubjectErasureResult },
    errors: [
      'data-subject-resolver-missing',
      'data-subject-resolver-failed',
      'data-subject-active',
      'audit-unavailable',
    ],
    audit: { action: 'data-subject.erase', entity: 'data-subject', mode: 'fail-closed' },
    cli: { handWritten: true },
  },
});
