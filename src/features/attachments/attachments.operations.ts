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
    summary: 'Upload a file that runs can name',
    description:
      'The type is told from the bytes of the file, never from what the sender claims. With `sessionId` the file belongs to that session and goes with it.',
    query: Type.Object({ sessionId: Type.Optional(SessionId) }),
    upload: { part: 'file', description: 'Its type is found in its bytes, whatever the part says' },
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
    description: 'Entries describe the files; the bytes are a call of their own.',
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
      'The answer is always a download, never shown by a browser as a page of the service. A request with the ETag of an earlier answer is spared the transfer.',
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
    description: 'Runs and sessions that named the file keep its id and find nothing under it any more.',
    params: AttachmentId,
    responses: { 204: null },
    errors: ['not-found'],
    cli: { command: 'attachments delete', done: 'Deleted attachment {id}.' },
  },
});
