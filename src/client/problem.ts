import {
  AcpError,
  type ErrorCode,
  type ErrorDetails,
  errorTable,
  isErrorCode,
  type Problem,
} from '../contract/errors.ts';
import { readOpenAiError } from '../contract/openai-error.ts';
import { isRecord } from '../contract/record.ts';

/** An error answer of the service, with the problem details as they were sent. */
export class ProblemError extends AcpError {
  readonly problem: Problem;

  constructor(code: ErrorCode, problem: Problem, details: ErrorDetails, cause?: unknown) {
    super(code, problem.detail, { details, cause });
    this.name = 'ProblemError';
    this.problem = problem;
  }
}

/** Stands in for a code that only a newer service knows: the same exit code, the service's own text. */
const codeByStatus: Readonly<Record<number, ErrorCode>> = {
  401: 'unauthenticated',
  403: 'insufficient-role',
  404: 'not-found',
  405: 'method-not-allowed',
  406: 'not-acceptable',
  409: 'version-conflict',
  413: 'payload-too-large',
  415: 'unsupported-media-type',
  422: 'content-blocked',
  429: 'rate-limited',
  501: 'feature-not-available',
  502: 'provider-error',
  503: 'store-unavailable',
};

const fallbackCode = (status: number): ErrorCode =>
  codeByStatus[status] ?? (status >= 400 && status < 500 ? 'validation-failed' : 'internal');

const standardMembers = new Set(['type', 'title', 'status', 'detail', 'instance', 'code', 'requestId']);

const extensions = (problem: Readonly<Record<string, unknown>>): ErrorDetails =>
  Object.fromEntries(Object.entries(problem).filter(([name]) => !standardMembers.has(name))) as ErrorDetails;

/** Reads an error answer; a body that is no problem document (a proxy's page) is described by its status. */
export const problemError = (status: number, body: unknown, instance: string, runId?: string): ProblemError => {
  const told = readOpenAiError(body);
  if (told !== null) {
    const code = isErrorCode(told.code) ? told.code : fallbackCode(status);
    const { title } = errorTable[code];
    const problem = {
      type: `urn:acp:problem:${code}`,
      title,
      status,
      detail: told.message,
      instance,
      code,
      requestId: '',
    };
    return new ProblemError(code, problem, runId === undefined ? {} : { runId });
  }
  if (!isRecord(body) || typeof body['detail'] !== 'string') {
    const code = fallbackCode(status);
    const detail = `The service answered ${status} without an explanation.`;
    const problem = { type: 'about:blank', title: detail, status, detail, instance, code, requestId: '' };
    return new ProblemError(code, problem, {});
  }
  const problem = body as unknown as Problem;
  const code = isErrorCode(problem.code) ? problem.code : fallbackCode(status);
  const details = extensions(body);
  return new ProblemError(code, problem, runId === undefined ? details : { ...details, runId });
};
