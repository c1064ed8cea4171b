import type { ActiveRun } from '../active-run.ts';
import { type AttachmentReference, attachmentsIn } from '../context/index.ts';
import { guardedAttachments } from '../control/index.ts';
import type { OpeningPorts } from './engine-ports.ts';

const readAttachments = async (
  run: ActiveRun,
  ports: OpeningPorts,
  named: readonly AttachmentReference[],
  earlier: readonly AttachmentReference[],
): Promise<void> => {
  run.bypassesCache = true;
  const { tenantId } = run.plan;
  const sessionId = run.session?.sessionId ?? run.plan.sessionId;
  run.attachments = await ports.attachments.load({ tenantId, sessionId, named, earlier, signal: run.signal });
  if (ports.guards !== null)
    run.attachments = await guardedAttachments(run, ports.guards, run.attachments, [...named, ...earlier]);
  run.callRecord?.attached([...named, ...earlier], run.attachments);
};

/** Reads what the conversation names of attachments, so that a later delete does not disturb the run. Null: nothing. */
export const loadAttachments = (run: ActiveRun, ports: OpeningPorts): Promise<void> | null => {
  const named = run.plan.attachments;
  const earlier = attachmentsIn([...(run.session?.history ?? []), ...run.messages]);
  return named.length === 0 && earlier.length === 0 ? null : readAttachments(run, ports, named, earlier);
};
