import type { Json } from '../../contract/schema.ts';
import type { AttachmentDescriptor, ToolCallUsage, ToolContext } from './tool.ts';
import type { ToolCallDeps, ToolCallHooks, ToolCallRequest } from './tool-call.ts';

const customEventType = /^[a-z0-9._-]{1,128}$/;
const reservedPrefix = 'acp.';
const usageUnit = /^[a-z0-9-]{1,32}$/;

/** What one call lends to its authorizer and its body, until it is closed. */
export interface CallScope {
  readonly context: Omit<ToolContext, 'signal'>;
  /** The last report; null when there was none. */
  usage(): ToolCallUsage | null;
  /** Files that the body has saved, in order. */
  saved(): readonly AttachmentDescriptor[];
  /** From now on events and reports of a body that is still running are dropped. */
  close(): void;
}

/** Sums of amounts stay exact below it, and nothing that is bought comes near. */
const maxAmount = 1_000_000_000_000;

const isAmount = (value: unknown): boolean => typeof value === 'number' && value >= 0 && value <= maxAmount;

const checkedUsage = (usage: ToolCallUsage): ToolCallUsage => {
  const { unit, quantity, cost, currency, isEstimated } = usage;
  if (!usageUnit.test(unit)) throw new TypeError('The unit of usage must be 1 to 32 of a-z 0-9 -');
  if (!isAmount(quantity)) throw new TypeError('The quantity of usage must be a number from 0 to 1e12');
  if (cost !== null && !isAmount(cost))
    throw new TypeError('The cost of usage must be a number from 0 to 1e12, or null');
  if (currency !== null && typeof currency !== 'string') throw new TypeError('The currency must be text or null');
  if (typeof isEstimated !== 'boolean') throw new TypeError('isEstimated must be true or false');
  return { unit, quantity, cost, currency, isEstimated };
};

const checkCustomType = (customType: string): void => {
  if (!customEventType.test(customType)) throw new TypeError('The type of an event must be 1 to 128 of a-z 0-9 . _ -');
  if (customType.startsWith(reservedPrefix))
    throw new TypeError(`The type of an event must not start with ${reservedPrefix}`);
};

export const openCallScope = (
  request: ToolCallRequest,
  hooks: ToolCallHooks,
  deps: Pick<ToolCallDeps, 'saveAttachment'>,
): CallScope => {
  let open = true;
  let reported: ToolCallUsage | null = null;
  const saved: AttachmentDescriptor[] = [];
  return {
    context: {
      ...request.run,
      toolCallId: request.toolCallId,
      ...(request.traceparent === undefined ? {} : { traceparent: request.traceparent }),
      ...(request.tracestate === undefined ? {} : { tracestate: request.tracestate }),
      idempotencyKey: request.idempotencyKey,
      emit(customType: string, payload: Json) {
        checkCustomType(customType);
        if (open) hooks.emit(customType, payload);
      },
      async saveAttachment(bytes, fileName) {
        if (!(bytes instanceof Uint8Array)) throw new TypeError('The bytes of an attachment must be a Uint8Array');
        if (typeof fileName !== 'string') throw new TypeError('The name of an attachment must be text');
        if (!open) throw new Error('The call is over, and saves no more attachments');
        const attachment = await deps.saveAttachment(request.run, request.principal, bytes, fileName);
        saved.push(attachment);
        return attachment;
      },
      reportUsage(usage) {
        const checked = checkedUsage(usage);
        if (open) reported = checked;
      },
    },
    usage: () => reported,
    saved: () => saved,
    close() {
      open = false;
    },
  };
};
