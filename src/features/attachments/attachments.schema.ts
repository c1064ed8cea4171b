import Type, { type Static } from 'typebox';
import { nullable, Time, Uuid } from '../../contract/schema.ts';

export const AttachmentDescriptor = Type.Object(
  {
    id: Uuid,
    tenantId: Type.String(),
    sessionId: nullable(Type.String()),
    runId: nullable(Uuid, { description: 'Run whose tool created the file; null for an upload' }),
    fileName: Type.String({ minLength: 1, maxLength: 255 }),
    mediaType: Type.String({ description: 'Media type detected from the bytes' }),
    byteSize: Type.Integer({ minimum: 1 }),
    sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
    createdBy: nullable(Type.String()),
    createdAt: Time,
  },
  { title: 'AttachmentDescriptor', description: 'A file that was uploaded or created by a tool, without its bytes' },
);
export type AttachmentDescriptor = Static<typeof AttachmentDescriptor>;
