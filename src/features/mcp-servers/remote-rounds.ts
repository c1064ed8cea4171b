import { tasksExtension } from '../../contract/mcp.ts';
import { isRecord } from '../../contract/record.ts';
import { type BuiltInCall, ToolQuestions, ToolStop } from '../../engine/tools/index.ts';
import { McpFailure } from '../../providers/mcp/mcp-failure.ts';
import type { McpClient, McpRequestOptions, McpSession } from '../../providers/mcp/mcp-target.ts';
import { cancelTask, followTask, type RemoteTask, taskOf, updateTask } from '../../providers/mcp/tasks.ts';
import { questionsIn, responsesOf } from './questions.ts';

/** One call of a remote tool, and how it is sent. */
export interface RemoteCall {
  readonly client: Pick<McpClient, 'request'>;
  readonly session: McpSession;
  readonly server: string;
  readonly endpoint: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly options: McpRequestOptions & { readonly signal: AbortSignal };
  readonly call: Pick<BuiltInCall, 'mayAsk' | 'continued'>;
}

/** What a call goes on with once its questions are answered. */
interface Kept {
  /** Whoever asked; nobody else is given its state. */
  readonly endpoint: string;
  /** How often it has asked. */
  readonly rounds: number;
  readonly requestState: string | null;
  /** Of a call that its server works on, with the questions that were answered before. */
  readonly task: (RemoteTask & { readonly answered: readonly string[] }) | null;
}

type Result = Readonly<Record<string, unknown>>;

const maxRounds = 8;
const maxStateBytes = 65_536;

const stateOf = ({ requestState }: Result, server: string): string | null => {
  if (requestState === undefined) return null;
  if (typeof requestState !== 'string') throw new McpFailure('broken');
  if (Buffer.byteLength(requestState) <= maxStateBytes) return requestState;
  throw new ToolStop(
    'failed',
    `Tool failed: the state that ${server} wants back is larger than ${maxStateBytes} bytes`,
  );
};

const begun = ({ endpoint }: RemoteCall): Kept => ({ endpoint, rounds: 0, requestState: null, task: null });

/**
 * A call with everything that its server wants besides: answers of people, its own state, and time. Gives back the result;
 * throws ToolQuestions where a person has to answer first, ToolStop and McpFailure.
 */
export const callInRounds = async (remote: RemoteCall): Promise<Result> => {
  const { client, session, server, endpoint, call, params } = remote;
  const isStateless = session.generation === 'Stateless';
  const mayAsk = call.mayAsk === true;
  const options = {
    ...remote.options,
    capabilities: {
      ...(mayAsk ? { elicitation: { form: {}, url: {} } } : {}),
      extensions: { [tasksExtension]: {} },
    },
  };

  const counted = (kept: Kept): Kept => {
    if (kept.rounds >= maxRounds) throw new ToolStop('failed', `Tool failed: ${server} has asked ${maxRounds} times`);
    return { ...kept, rounds: kept.rounds + 1 };
  };
  const ask = (requests: unknown, kept: Kept): never => {
    const questions = mayAsk ? questionsIn(requests) : null;
    if (questions === null)
      throw new ToolStop('failed', `Tool failed: ${server} asked for something that it cannot be given`);
    throw new ToolQuestions(questions, JSON.stringify(kept));
  };

  /** Until the task has ended. */
  const followed = async (kept: Kept, task: NonNullable<Kept['task']>): Promise<Result> => {
    const step = await followTask(client, task, new Set(task.answered), options);
    if (step.kind === 'ended') return step.result;
    const asked = Object.keys(isRecord(step.requests) ? step.requests : {});
    const open = Object.fromEntries(
      Object.entries(isRecord(step.requests) ? step.requests : {}).filter(([key]) => !task.answered.includes(key)),
    );
    try {
      return ask(open, { ...counted(kept), task: { ...task, answered: [...new Set([...task.answered, ...asked])] } });
    } catch (error) {
      if (!(error instanceof ToolQuestions)) cancelTask(client, task);
      throw error;
    }
  };

  /** What an answer leads to: the result, or another round without a person. */
  const answered = async (result: Result, kept: Kept): Promise<{ readonly result: Result } | Kept> => {
    const { resultType, inputRequests } = result;
    if (resultType === undefined || resultType === 'complete') return { result };
    const task = resultType === 'task' && isStateless ? taskOf(result) : null;
    if (task !== null) return { result: await followed(kept, { ...task, answered: [] }) };
    if (resultType !== 'input_required' || !isStateless) throw new McpFailure('broken');
    const next = { ...counted(kept), requestState: stateOf(result, server) };
    if (inputRequests !== undefined) return ask(inputRequests, next);
    if (next.requestState === null) throw new McpFailure('broken');
    return next;
  };

  const sent = async (from: Kept, responses: Readonly<Record<string, unknown>>): Promise<Result> => {
    let kept = from;
    for (let given = responses; ; given = {}) {
      const { requestState } = kept;
      const whole = {
        ...params,
        ...(Object.keys(given).length === 0 ? {} : { inputResponses: given }),
        ...(requestState === null ? {} : { requestState }),
      };
      const next = await answered(await client.request('tools/call', whole, options), kept);
      if ('result' in next) return next.result;
      kept = next;
    }
  };

  if (call.continued === undefined) return sent(begun(remote), {});
  const kept = JSON.parse(call.continued.state) as Kept;
  const responses = responsesOf(call.continued.answers);
  if (kept.endpoint !== endpoint || !isStateless)
    throw new ToolStop('failed', `Tool failed: ${server} is not the server any more that has asked`);
  if (responses === null) throw new ToolStop('failed', `Tool failed: the answer for ${server} may not be passed on`);
  if (kept.task === null) return sent(kept, responses);
  await updateTask(client, kept.task, responses, options);
  return followed(kept, kept.task);
};
