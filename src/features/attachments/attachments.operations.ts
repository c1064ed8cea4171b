import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { nullable, pagingQuery, sessionIdPattern, Uuid } from '../../contract/schema.ts';
import { AttachmentDescriptor } from './attachments.schema.ts';

const read = { tag: 'Attachments', role: 'Reader', scope: 'RunsRead', method: 'GET' } as const;
const write = { tag: 'Attachments', role: 'Operator', scope: 'RunsWrite' } as const;
const AttachmentId = Type.Object({ id: Uuid });
const SessionId = Type.String({ pattern: sessionIdPattern });

export const attachmentOperations = defineOperations({
  upload: {
    ...write,
    method: 'POST',
    path: '/api/attachments',
    summary: 'Upload a file that runs can reference',
    description:
      'The media type is detected from the bytes of the file; the type that the sender claims is ignored. With `sessionId` the file belongs to that session and is deleted with it.',
    query: Type.Object({ sessionId: Type.Optional(SessionId) }),
    upload: { part: 'file', description: 'The media type is detected from the bytes; the type of the part is ignored' },
    responses: { 201: AttachmentDescriptor },
    errors: [
      'file-required',
      'file-empty',
      'run-not-allowed',
      'session-not-owned',
      'attachment-too-large',
      'media-type-not-allowed',
    ],
    cli: { handWritten: true },
  },
  list: {
    ...read,
    path: '/api/attachments',
    summary: 'List attachments, newest first',
    description: 'Entries describe the files; another operation downloads the bytes.',
    query: Type.Object({ sessionId: Type.Optional(SessionId), ...pagingQuery }),
    responses: { 200: Type.Array(AttachmentDescriptor) },
    errors: ['run-not-allowed'],
    cli: { columns: ['id', 'fileName', 'mediaType', 'byteSize', 'sessionId', 'createdAt'] },
  },
  download: {
    ...read,
    path: '/api/attachments/{id}',
    summary: 'Download the bytes of an attachment',
    description:
      'The response is always a download, which a browser never displays as a page of the service. A request with the ETag of an earlier response gets 304 without the bytes.',
    params: AttachmentId,
    headers: Type.Object({
      'if-none-match': Type.Optional(nullable(Type.String({ description: 'ETag of the bytes that the caller has' }))),
    }),
    download: 'The bytes; their media type is in `Content-Type`, their SHA-256 in `ETag`',
    responses: { 304: null },
    errors: ['not-found'],
    cli: { handWritten: true },
  },
  remove: {
    ...write,
    method: 'DELETE',
    path: '/api/attachments/{id}',
    summary: 'Delete an attachment and its bytes',
    description: 'Runs and sessions that reference the file keep its id, which then resolves to nothing.',
    params: AttachmentId,
    responses: { 204: null },
    errors: ['not-found'],
    cli: { command: 'attachments delete', done: 'Deleted attachment {id}.' },
  },
});
