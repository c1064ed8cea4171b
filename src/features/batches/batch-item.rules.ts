import { AcpError, type FieldError } from '../../contract/errors.ts';
import { checkRunBody } from '../../contract/run-body.ts';
import { AgentRunRequest } from '../../contract/run-request.ts';
import { compileChecker } from '../../core/validate.ts';

const checker = compileChecker(AgentRunRequest, { nullIsAbsent: true });

const only = (path: string, message: string): readonly FieldError[] => [{ path, message }];

/** What only a caller who waits for an answer can ask for. */
const callersOwn = (body: AgentRunRequest): readonly FieldError[] => {
  if (body.stream === true) return only('stream', 'must not be true in an item of a batch');
  if ((body.lane ?? null) !== null) return only('lane', 'is that of the job');
  if ((body.approvals ?? []).length > 0) return only('approvals', 'cannot be an item of a batch');
  if ((body.toolResults ?? []).length > 0) return only('toolResults', 'cannot be an item of a batch');
  return [];
};

// Far more than a request has members. Those of a hostile one are not looked at one by one.
const maxMembers = 1000;

/** An item of a batch as the request of its run: a message, or a whole one. Else what is wrong with it, by paths in the item. */
export const readBatchItem = (input: unknown): AgentRunRequest | readonly FieldError[] => {
  if (typeof input !== 'string' && (typeof input !== 'object' || input === null || Array.isArray(input)))
    return only('', 'must be a message or an object such as the body of a run');
  if (typeof input === 'object' && Object.keys(input).length > maxMembers)
    return only('', `has more than ${maxMembers} members`);
  const body = checker.normalize(typeof input === 'string' ? { message: input } : input);
  if (!checker.check(body)) return checker.errors(body);
  const request = body as AgentRunRequest;
  const own = callersOwn(request);
  if (own.length > 0) return own;
  try {
    checkRunBody(request);
    return request;
  } catch (error) {
    if (error instanceof AcpError && error.details.errors !== undefined) return error.details.errors;
    throw error;
  }
};

export const isRequest = (read: AgentRunRequest | readonly FieldError[]): read is AgentRunRequest =>
  !Array.isArray(read);
