import { AcpError, type ErrorCode } from '../../contract/errors.ts';
import { noContent, ok, type UploadedFile } from '../../contract/operation.ts';
import { clampPaging } from '../../contract/schema.ts';
import type { CallContext, Handlers, Principal } from '../../core/context.ts';
import { hasTag } from '../../core/entity-tags.ts';
import { isoTime } from '../../core/iso-time.ts';
import { type ContentStore, contentPlace } from '../../db/content/store.ts';
import type { AttachmentRow } from '../../db/tables.ts';
import type { AttachmentReference } from '../../engine/context/index.ts';
import { ToolError, type ToolRun } from '../../engine/tools/index.ts';
import type { AttachmentAccess } from './attachment-access.ts';
import type { ContentCleanup } from './attachment-content.ts';
import type { AttachmentIntake } from './attachment-intake.ts';
import type { attachmentOperations } from './attachments.operations.ts';
import type { AttachmentDescriptor } from './attachments.schema.ts';
import type { AttachmentStore } from './attachments.store.ts';
import { attachmentDisposition } from './file-name.rules.ts';

export interface AttachmentServiceDeps {
  readonly store: AttachmentStore;
  readonly content: ContentStore;
  readonly intake: AttachmentIntake;
  readonly cleanup: ContentCleanup;
  readonly access: AttachmentAccess;
  readonly ownerOf: (principal: Principal) => string | null;
  readonly prefix: string;
}

const toDescriptor = (row: AttachmentRow): AttachmentDescriptor => ({
  id: row.id,
  tenantId: row.tenant_id,
  sessionId: row.session_id,
  runId: row.run_id,
  fileName: row.file_name,
  mediaType: row.media_type,
  byteSize: row.byte_size,
  sha256: row.sha256,
  createdBy: row.created_by,
  createdAt: isoTime(row.created_at),
});

const whole = async function* (bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  yield bytes;
};

/** What is the tool's own mistake, and a model may hear of. */
const refusals: ReadonlySet<ErrorCode> = new Set(['file-empty', 'attachment-too-large', 'media-type-not-allowed']);

/** Files that tools make: the same rules as for an upload, kept for the run and its session. */
export const toolAttachments =
  ({ intake, ownerOf }: Pick<AttachmentServiceDeps, 'intake' | 'ownerOf'>) =>
  async (run: ToolRun, principal: Principal, bytes: Uint8Array, fileName: string): Promise<AttachmentDescriptor> => {
    const origin = {
      tenantId: run.tenantId,
      sessionId: run.sessionId,
      runId: run.runId,
      createdBy: principal.actor,
      userId: principal.userId,
      ownerId: ownerOf(principal),
    };
    try {
      return toDescriptor(await intake.receive({ name: fileName, bytes: whole(bytes) }, origin));
    } catch (error) {
      if (error instanceof AcpError && refusals.has(error.code)) throw new ToolError(error.message, { cause: error });
      throw error;
    }
  };

/** Files that are part of a request which starts a run. */
export const requestAttachments =
  ({ intake, ownerOf, access }: Pick<AttachmentServiceDeps, 'intake' | 'ownerOf' | 'access'>) =>
  async (
    context: CallContext,
    file: UploadedFile,
    sessionId: string | null,
    runId: string,
  ): Promise<AttachmentReference> => {
    const { tenantId, principal } = context;
    await access.mayUpload(context, sessionId);
    const row = await intake.receive(file, {
      tenantId,
      sessionId: null,
      runId,
      createdBy: principal.actor,
      userId: principal.userId,
      ownerId: ownerOf(principal),
    });
    return { attachmentId: row.id, mediaType: row.media_type, fileName: row.file_name };
  };

/** The log names the file. */
const damaged = (message: string, cause: string): AcpError =>
  new AcpError('store-unavailable', message, { cause: new Error(cause) });

export const attachmentService = (deps: AttachmentServiceDeps): Handlers<typeof attachmentOperations> => {
  const { store, content, intake, cleanup, access } = deps;

  /** One answer for an unknown id, another tenant's, and one that the caller may not see. */
  const find = async (context: CallContext, id: string, action: 'Read' | 'Delete'): Promise<AttachmentRow> => {
    const row = await store.get(context.tenantId, id.toLowerCase());
    if (row === undefined || !(await access.may(context, action, row)))
      throw new AcpError('not-found', `Attachment ${id} was not found.`);
    return row;
  };

  return {
    async upload(context, { query, file }) {
      const sessionId = query.sessionId ?? null;
      await access.mayUpload(context, sessionId);
      const { actor, userId } = context.principal;
      const row = await intake.receive(file, {
        tenantId: context.tenantId,
        sessionId,
        runId: null,
        createdBy: actor,
        userId,
        ownerId: deps.ownerOf(context.principal),
      });
      const headers = { Location: `${deps.prefix}/api/attachments/${row.id}` };
      return { status: 201, body: toDescriptor(row), headers };
    },

    async list(context, { query }) {
      const sessionId = query.sessionId ?? null;
      const ownerId = await access.mayList(context, sessionId);
      const rows = await store.list(context.tenantId, { sessionId, ownerId, ...clampPaging(query) });
      return ok(rows.map(toDescriptor));
    },

    async download(context, { params, headers: given }) {
      const row = await find(context, params.id, 'Read');
      const headers = { ETag: `"${row.sha256}"`, 'Cache-Control': 'private, no-cache' };
      if (hasTag(given['if-none-match'], headers.ETag)) return { status: 304, headers };
      const place = contentPlace(row.tenant_id, row.sha256);
      const file = await content.open(place);
      if (file === null) {
        // A delete that came between is an ordinary 404; anything else is damage.
        await find(context, params.id, 'Read');
        throw damaged('The bytes of the attachment are missing from the store.', `There is no file ${place}`);
      }
      if (file.sizeBytes !== row.byte_size) {
        await file.dispose();
        throw damaged(
          'The stored bytes of the attachment are not those that came.',
          `The length of ${place} is another`,
        );
      }
      return {
        status: 200,
        file,
        headers: {
          ...headers,
          'Content-Type': row.media_type,
          'Content-Disposition': attachmentDisposition(row.file_name),
        },
      };
    },

    async remove(context, { params }) {
      const row = await find(context, params.id, 'Delete');
      content.assertWritable();
      if (!(await store.remove(row.tenant_id, row.id)))
        throw new AcpError('not-found', `Attachment ${params.id} was not found.`);
      await cleanup.release(row.tenant_id, [row.sha256]);
      return noContent();
    },
  };
};
