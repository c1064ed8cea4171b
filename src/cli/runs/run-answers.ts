import type { Client } from '../../client/client.ts';
import { AcpError } from '../../contract/errors.ts';
import type { AgentRunRequest } from '../../contract/run-request.ts';
import type { ClientToolResult, ToolApprovalDecision } from '../../contract/tool-approval.ts';
import { splitPair } from '../command-host.ts';

/** Options of `acp run` that answer what a session waits for. */
export interface AnswerOptions {
  readonly approve?: readonly string[];
  readonly reject?: readonly string[];
  readonly reason?: string;
  readonly toolResult?: readonly string[];
  readonly toolError?: readonly string[];
}

/** The members of a run request that answer a paused run. */
export type RunAnswers = Pick<AgentRunRequest, 'approvals' | 'toolResults'>;

const everyCall = 'all';

const wrong = (message: string): AcpError => new AcpError('validation-failed', message);

const toolResults = ({ toolResult = [], toolError = [] }: AnswerOptions): ClientToolResult[] => [
  ...toolResult.map((pair) => {
    const [callId, result] = splitPair(pair, '--tool-result takes CALL=TEXT');
    return { callId, result };
  }),
  ...toolError.map((pair) => {
    const [callId, errorMessage] = splitPair(pair, '--tool-error takes CALL=TEXT');
    return { callId, errorMessage };
  }),
];

const check = ({ approve = [], reject = [], reason }: AnswerOptions): void => {
  const twice = reject.find((id) => approve.includes(id));
  if (twice !== undefined) throw wrong(`--approve and --reject both name "${twice}".`);
  if (reason !== undefined && reject.length === 0) throw wrong('--reason goes with --reject.');
};

/** `all` stands for every open request that the other options do not name. */
const named = async (
  client: Client,
  sessionId: string,
  { approve = [], reject = [] }: AnswerOptions,
): Promise<{ readonly approved: readonly string[]; readonly rejected: readonly string[] }> => {
  const plain = (ids: readonly string[]): string[] => [...new Set(ids)].filter((id) => id !== everyCall);
  const approved = plain(approve);
  const rejected = plain(reject);
  if (!approve.includes(everyCall) && !reject.includes(everyCall)) return { approved, rejected };
  const { body } = await client.sessions.get({ params: { sessionId } });
  const open = body.openRequests.filter(({ kind }) => kind === 'Approval').map(({ id }) => id);
  if (open.length === 0) throw wrong(`Session "${sessionId}" waits for no approval.`);
  const others = open.filter((id) => !approved.includes(id) && !rejected.includes(id));
  return approve.includes(everyCall)
    ? { approved: [...approved, ...others], rejected }
    : { approved, rejected: [...rejected, ...others] };
};

const decisions = async (
  client: Client,
  sessionId: string,
  options: AnswerOptions,
): Promise<readonly ToolApprovalDecision[]> => {
  const { approved, rejected } = await named(client, sessionId, options);
  const reason = options.reason === undefined ? {} : { reason: options.reason };
  return [
    ...approved.map((requestId) => ({ requestId, approved: true })),
    ...rejected.map((requestId) => ({ requestId, approved: false, ...reason })),
  ];
};

/** The answers that the options give; empty without any of them. Throws `validation-failed` for what does not fit. */
export const answersOf = async (
  client: Client,
  sessionId: string | undefined,
  options: AnswerOptions,
): Promise<RunAnswers> => {
  check(options);
  const results = toolResults(options);
  const decides = (options.approve?.length ?? 0) + (options.reject?.length ?? 0) > 0;
  if (results.length === 0 && !decides) return {};
  if (sessionId === undefined) throw wrong('An answer needs the session that waits for it: --session.');
  if (results.length > 0 && decides) throw wrong('Approvals and results of tools are answers to different runs.');
  if (!decides) return { toolResults: results };
  return { approvals: [...(await decisions(client, sessionId, options))] };
};
