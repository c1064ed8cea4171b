import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { AcpError, type ErrorCode, toProblem } from '../contract/errors.ts';
import { newId } from '../core/ids.ts';
import { protectiveHeaders } from './protective-headers.ts';

const codeOf = (error: NodeJS.ErrnoException): ErrorCode => {
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'request-timeout';
  if (error.code === 'HPE_HEADER_OVERFLOW') return 'headers-too-large';
  return 'request-malformed';
};

const messages: Partial<Record<ErrorCode, string>> = {
  'request-timeout': 'The request did not arrive in time.',
  'headers-too-large': 'The request line and headers are too large.',
  'request-malformed': 'The request is not valid HTTP/1.1.',
};

/** Node keeps the response in progress here; writing into one that has begun would corrupt it. */
interface ServingSocket extends Socket {
  readonly _httpMessage?: { readonly headersSent: boolean } | null;
}

/**
 * Answers what never became a request: bytes that are not HTTP, headers beyond the limit, a caller that was too slow.
 * The connection is closed after it, since nothing says where a next request would begin.
 */
export const answerClientError = (error: NodeJS.ErrnoException, socket: ServingSocket): void => {
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  if (!socket.writable || socket._httpMessage?.headersSent === true) {
    socket.destroy();
    return;
  }
  const code = codeOf(error);
  const requestId = newId();
  const problem = toProblem(new AcpError(code, messages[code] ?? ''), '', requestId);
  const body = JSON.stringify(problem);
  const head = [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status] ?? ''}`,
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    'Cache-Control: no-store',
    ...Object.entries(protectiveHeaders).map(([name, value]) => `${name}: ${value}`),
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
};
