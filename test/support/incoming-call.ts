import type { IncomingCall, ReceivedInput } from '../../src/core/caller/incoming-call.ts';
import type { OperationEntry } from '../../src/core/dispatch.ts';

export interface SentCall extends Partial<Omit<ReceivedInput, 'body'>> {
  readonly body?: unknown;
  readonly authenticate: IncomingCall['authenticate'];
}

/** A call that has arrived whole, for parts that are asked without a transport. */
export const incomingCall = (
  { operation }: OperationEntry,
  { authenticate, body, ...sent }: SentCall,
): IncomingCall => ({
  requestId: 'request-1',
  signal: new AbortController().signal,
  method: operation.method,
  path: operation.path,
  authenticate,
  readBody: () => null,
  received: () => ({ params: {}, query: {}, headers: {}, ...sent, body: () => body }),
});
