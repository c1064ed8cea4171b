import { AcpError, type ErrorCode } from '../../contract/errors.ts';
import type { GivenMessage } from './given-parts.ts';
import { callsOf } from './kept-items.ts';
import type { RequestNames } from './request-names.ts';
import type { GivenAnswer, ResponseInput } from './response-input.ts';
import type { ResponseSource } from './response-sources.ts';

/* Results of calls that an earlier response has left to the caller's program. */

const refused = (code: ErrorCode, message: string, path: string): AcpError =>
  new AcpError(code, message, { details: { errors: [{ path, message }] } });

export const unknownCall = ({ callId, path }: GivenAnswer): AcpError =>
  refused('tool-call-unknown', `The call "${callId}" is not known.`, `${path}.call_id`);

/** Results without a session to bring them to: they stand in what is given, behind the calls of the earlier response. */
export const answeredBehind = ({ history }: ResponseSource, { answers }: ResponseInput): GivenMessage[] => {
  const { names, open } = callsOf(history);
  const given = answers.map((answer): GivenMessage => {
    const { callId, result, path } = answer;
    const toolName = names.get(callId);
    if (toolName === undefined) throw unknownCall(answer);
    if (!open.delete(callId))
      throw refused('tool-call-answered', `The call "${callId}" is answered.`, `${path}.call_id`);
    return { role: 'Tool', callId, toolName, result };
  });
  const [missing] = open.keys();
  if (given.length > 0 && missing !== undefined)
    throw refused('tool-results-missing', `The call "${missing}" is not answered.`, 'input');
  return given;
};

const nativePath = /^toolResults(?:\[(\d+)\])?/;

/** Results of calls are items of the input, which the native request has in a member of their own. */
export const answerNames =
  (answers: readonly GivenAnswer[]): RequestNames =>
  (path) => {
    const [native, index] = nativePath.exec(path) ?? [];
    if (native === undefined) return null;
    const item = index === undefined ? undefined : answers[Number(index)];
    return item === undefined ? 'input' : `${item.path}.${path.endsWith('.result') ? 'output' : 'call_id'}`;
  };
