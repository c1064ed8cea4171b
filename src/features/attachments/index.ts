import type { RunAuthorization } from '../../core/caller/run-authorization.ts';
import type { Clock } from '../../core/clock.ts';
import type { LeftoverClosings } from '../../core/instance-state.ts';
import type { Logger } from '../../core/logger.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import { type ContentStore, contentPlace } from '../../db/content/store.ts';
import type { Storage } from '../../db/storage.ts';
import type { AttachmentRow } from '../../db/tables.ts';
import type { SessionAccess, SessionCleanup, SessionDeletion } from '../sessions/index.ts';
import { type AttachmentAccessDeps, createAttachmentAccess } from './attachment-access.ts';
import { createContentCleanup } from './attachment-content.ts';
import { type AttachmentLimits, createAttachmentIntake } from './attachment-intake.ts';
import { attachmentService, requestAttachments, toolAttachments } from './attachments.service.ts';
import { attachmentStore } from './attachments.store.ts';
import { looseContents } from './loose-contents.ts';
import { createRunAttachments } from './run-attachments.ts';

/** Keeping a file of somebody, and giving it up again. */
export type AttachmentUploads = Pick<ReturnType<typeof attachmentService>, 'upload' | 'remove'>;
export type { RunAttachmentPort } from './run-attachments.ts';

export interface AttachmentsDeps {
  readonly storage: Storage;
  readonly content: ContentStore;
  readonly limits: AttachmentLimits;
  readonly authorization: RunAuthorization;
  readonly owners: SessionAccess;
  readonly session: AttachmentAccessDeps['session'];
  readonly prefix: string;
  readonly telemetry: Telemetry;
  readonly log: Pick<Logger, 'warn' | 'info'>;
  readonly clock: Clock;
  readonly now: () => number;
  readonly newId: () => string;
}

export const attachmentsFeature = (deps: AttachmentsDeps) => {
  const { storage, content, limits, telemetry, prefix, log, now, newId } = deps;
  const access = createAttachmentAccess(deps);
  const ownerOf = deps.owners.callerOwner;
  const store = storage.stores(attachmentStore);
  const intake = createAttachmentIntake({ content, limits, telemetry, now, newId });
  const cleanup = createContentCleanup(content);
  // Bytes that could not be removed go with the next start; their rows are gone.
  const leftBehind = (error: unknown): void => log.warn({ error }, 'The bytes of deleted attachments are still there');
  const stopping = new AbortController();
  let sweeping: Promise<void> = Promise.resolve();
  /** The rows of a session go with it; then the bytes that nothing names any more. */
  const removeWithSession: SessionDeletion = (stores, ...session) =>
    stores(attachmentStore).removeOfSession(...session);
  const cleanupWithSession: SessionCleanup = async (tenantId, sessionId) => {
    const hashes = (await store.ofSession(tenantId, sessionId)).map((row) => row.sha256);
    if (hashes.length > 0) content.assertWritable();
    return () => cleanup.release(tenantId, hashes).catch(leftBehind);
  };
  return {
    handlers: attachmentService({ store, content, intake, cleanup, access, ownerOf, prefix }),
    runs: createRunAttachments({ store, content, access }),
    save: toolAttachments({ intake, ownerOf }),
    /** What a run has made, the first one first. */
    ofRun: store.ofRun,
    /** Keeps a file that came with a request, as an upload is kept; a session has it once a run of it names it. */
    keep: requestAttachments({ intake, ownerOf, access }),
    removeWithSession,
    cleanupWithSession,
    /** Deletes an attachment without a session, with its bytes; false: it stays, or was gone. */
    async removeOrphan(tenantId: string, id: string): Promise<boolean> {
      content.assertWritable();
      const row = await store.removeOrphan(tenantId, id);
      if (row !== undefined) await cleanup.release(tenantId, [row.sha256]).catch(leftBehind);
      return row !== undefined;
    },
    /** Throws while no bytes can be removed. */
    assertReleasable: (): void => content.assertWritable(),
    /** Removes the bytes that no row names any more; what fails is left to the next start. */
    releaseBytes: (tenantId: string, hashes: readonly string[]): Promise<void> =>
      cleanup.release(tenantId, hashes).catch(leftBehind),
    /** The bytes of a row; null: they are gone. */
    bytesOf: (row: Pick<AttachmentRow, 'tenant_id' | 'sha256'>): Promise<Uint8Array | null> =>
      content.read(contentPlace(row.tenant_id, row.sha256)),
    loose: looseContents(content, deps),
    leftovers: { attachmentDrafts: () => content.removeDrafts() } satisfies LeftoverClosings<'attachmentDrafts'>,
    /** Looks for bytes that no row names, in the background. */
    startSweep(): void {
      sweeping = content.sweep(stopping.signal).then((removed) => {
        if (removed > 0) log.info({ removed }, 'Bytes of attachments that nothing names were removed');
      }, leftBehind);
    },
    async close(): Promise<void> {
      stopping.abort();
      await sweeping;
      // An upload that was cut off may still be about to remove its own.
      await content.removeDrafts().catch(leftBehind);
    },
  };
};
