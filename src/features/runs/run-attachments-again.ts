import { AcpError } from '../../contract/errors.ts';
import type { AgentRunRequest } from '../../contract/run-request.ts';
import type { AttachmentReference } from '../../engine/context/index.ts';
import { RunFailure } from '../../engine/run-failure.ts';
import type { RunAttachmentPort } from '../attachments/index.ts';

/** What a queued run names, looked up when it starts: it may have been deleted since the run was accepted. */
export const attachmentsAgain = async (
  attachments: Pick<RunAttachmentPort, 'stillThere'>,
  tenantId: string,
  { attachmentIds, sessionId }: AgentRunRequest,
): Promise<readonly AttachmentReference[] | RunFailure> => {
  try {
    return await attachments.stillThere(tenantId, attachmentIds ?? [], sessionId ?? null);
  } catch (error) {
    if (!(error instanceof AcpError) || error.code !== 'attachment-not-found') throw error;
    return new RunFailure('Infrastructure', 'attachment_not_found', error.message, { cause: error });
  }
};
