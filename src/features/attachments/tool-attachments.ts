import { AcpError, type ErrorCode } from '../../contract/errors.ts';
import type { Principal } from '../../core/context.ts';
import { type AttachmentDescriptor, ToolError, type ToolRun } from '../../engine/tools/index.ts';
import type { AttachmentIntake } from './attachment-intake.ts';
import { toDescriptor } from './attachments.service.ts';

export type SaveAttachment = (
  run: ToolRun,
  principal: Principal,
  bytes: Uint8Array,
  fileName: string,
) => Promise<AttachmentDescriptor>;

const whole = async function* (bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  yield bytes;
};

/** What is the tool's own mistake, and a model may hear of. */
const refusals: ReadonlySet<ErrorCode> = new Set(['file-empty', 'attachment-too-large', 'media-type-not-allowed']);

/** Files that tools make: the same rules as for an upload, kept for the run and its session. */
export const toolAttachments =
  (intake: AttachmentIntake, ownerOf: (principal: Principal) => string | null): SaveAttachment =>
  async (run, principal, bytes, fileName) => {
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
