import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { DataSubjectErasureResult } from './data-subjects.schema.ts';

const shared = { tag: 'Data subjects', role: 'Admin', scope: 'PlatformAdmin' } as const;
const subject = Type.Object({
  id: Type.String({ minLength: 1, maxLength: 256, description: 'Whatever names a person to the host' }),
});

export const dataSubjectOperations = defineOperations({
  export: {
    ...shared,
    method: 'GET',
    path: '/api/data-subjects/{id}/export',
    summary: 'Export everything that is stored of one person',
    description:
      'A module of the host says what belongs to the person. The answer is written while it is read, and the export is an entry of the audit trail.',
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
    summary: 'Count everything that is stored of one person, or delete it',
    description:
      'By default it only counts; `dryRun=false` deletes everything in one transaction. While a run of the person is in progress, the deletion is refused.',
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
