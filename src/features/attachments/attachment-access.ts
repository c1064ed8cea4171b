import type { RunAuthorization } from '../../core/caller/run-authorization.ts';
import type { CallContext } from '../../core/context.ts';
import type { AttachmentRow } from '../../db/tables.ts';
import type { SessionAccess, SessionStore } from '../sessions/index.ts';

export interface AttachmentAccessDeps {
  readonly authorization: RunAuthorization;
  readonly owners: Pick<SessionAccess, 'enabled' | 'maySee' | 'assertMayRun' | 'listOwner'>;
  readonly session: SessionStore['get'];
}

/** The host's decision, then that of the session's owner. */
export const createAttachmentAccess = ({ authorization, owners, session }: AttachmentAccessDeps) => ({
  /** Throws `run-not-allowed`, or `session-not-owned` for a session of somebody else. */
  async mayUpload(context: CallContext, sessionId: string | null): Promise<void> {
    await authorization.require(context, 'Upload', { resource: 'Attachment', sessionId });
    if (!owners.enabled || sessionId === null) return;
    // A session that does not exist yet is nobody's.
    const row = await session(context.tenantId, sessionId);
    if (row !== undefined) owners.assertMayRun(context.principal, sessionId, row.owner_id);
  },
  /** Throws `run-not-allowed` for the whole list. Gives the only owner whose attachments are listed; null: all. */
  async mayList(context: CallContext, sessionId: string | null): Promise<string | null> {
    await authorization.require(context, 'List', { resource: 'Attachment', sessionId });
    return owners.listOwner(context.principal);
  },
  async may(context: CallContext, action: 'Read' | 'Delete', row: AttachmentRow): Promise<boolean> {
    const target = { id: row.id, sessionId: row.session_id, runId: row.run_id, userId: row.user_id };
    if (!(await authorization.allows(context, action, { resource: 'Attachment', ...target }))) return false;
    if (!owners.enabled) return true;
    const owner = row.session_id === null ? undefined : await session(context.tenantId, row.session_id);
    return owners.maySee(context.principal, owner === undefined ? row.owner_id : owner.owner_id);
  },
});

/** Who may use attachments, beyond tenant, role and scope: asked by every operation and by runs that name some. */
export type AttachmentAccess = ReturnType<typeof createAttachmentAccess>;
