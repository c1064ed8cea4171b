import { invalidField } from './errors.ts';
import { type AgentRunRequest, maxDocumentBytes } from './run-request.ts';

const repeated = (ids: readonly string[]): number => ids.findIndex((id, index) => ids.indexOf(id) !== index);

/** Decisions and results belong to a session, and each names its request once. */
const checkAnswers = ({ approvals = [], toolResults = [], sessionId }: AgentRunRequest): void => {
  if (approvals.length === 0 && toolResults.length === 0) return;
  if (approvals.length > 0 && toolResults.length > 0)
    throw invalidField('toolResults', 'cannot be sent with approvals');
  if ((sessionId ?? null) === null) throw invalidField('sessionId', 'is required with approvals and toolResults');
  const twice = repeated(approvals.map(({ requestId }) => requestId));
  if (twice >= 0) throw invalidField(`approvals[${twice}].requestId`, 'is in the list before');
  for (const [index, { approved, remember, rememberArgumentsOnly }] of approvals.entries()) {
    if (remember === true && !approved)
      throw invalidField(`approvals[${index}].remember`, 'is for approved calls only');
    if (rememberArgumentsOnly === true && remember !== true)
      throw invalidField(`approvals[${index}].rememberArgumentsOnly`, 'needs remember');
  }
  const again = repeated(toolResults.map(({ callId }) => callId));
  if (again >= 0) throw invalidField(`toolResults[${again}].callId`, 'is in the list before');
  for (const [index, { result, errorMessage }] of toolResults.entries())
    if (((result ?? null) === null) === ((errorMessage ?? null) === null))
      throw invalidField(`toolResults[${index}]`, 'must have exactly one of result and errorMessage');
};

/**
 * What a run's body must have beyond its shape, for an estimate as for a run. Throws `validation-failed` for documents
 * that are too large and for answers that belong together differently, or `message-required`.
 */
export const checkRunBody = (body: AgentRunRequest): void => {
  for (const [index, { content }] of (body.documents ?? []).entries())
    if (Buffer.byteLength(content) > maxDocumentBytes)
      throw invalidField(`documents[${index}].content`, `is longer than ${maxDocumentBytes} bytes`);
  checkAnswers(body);
  const answers = (body.approvals?.length ?? 0) + (body.toolResults?.length ?? 0);
  if ((body.message ?? '').trim() === '' && answers === 0)
    throw invalidField('message', 'is required', 'message-required');
};
