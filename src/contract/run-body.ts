import { AcpError, type FieldError } from './errors.ts';
import type { AgentRunRequest } from './run-request.ts';

const maxDocumentBytes = 262_144;

/** Members whose features this version does not have. */
const laterMembers = ['approvals', 'toolResults'] as const;

const refuse = (
  code: 'validation-failed' | 'feature-not-available' | 'message-required',
  error: FieldError,
): AcpError => new AcpError(code, `${error.path} ${error.message}.`, { details: { errors: [error] } });

/**
 * What a run's body must have beyond its shape, for an estimate as for a run. Throws `validation-failed` for documents
 * that are too large, `feature-not-available`, or `message-required`.
 */
export const checkRunBody = (body: AgentRunRequest): void => {
  for (const [index, { content }] of (body.documents ?? []).entries())
    if (Buffer.byteLength(content) > maxDocumentBytes)
      throw refuse('validation-failed', {
        path: `documents[${index}].content`,
        message: `is longer than ${maxDocumentBytes} bytes`,
      });
  for (const path of laterMembers)
    if ((body[path]?.length ?? 0) > 0)
      throw refuse('feature-not-available', { path, message: 'is not available in this version' });
  if ((body.message ?? '').trim() === '') throw refuse('message-required', { path: 'message', message: 'is required' });
};
