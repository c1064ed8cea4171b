import { AcpError, isRunFailure } from '../../contract/errors.ts';
import {
  RpcError,
  type RpcRequest,
  rpcCodes,
  rpcFailure,
  rpcNotification,
  rpcResult,
} from '../../contract/json-rpc.ts';
import type { StreamReply } from '../../contract/operation.ts';
import type { Json } from '../../contract/schema.ts';
import type { Clock } from '../../core/clock.ts';
import type { CallContext } from '../../core/context.ts';
import { accepts } from '../../core/json-rpc-message.ts';
import type { Logger } from '../../core/logger.ts';
import { metaOf } from './mcp-envelope.rules.ts';
import type { McpCallContext, McpCallEnd, McpCallOptions, McpTool } from './mcp-tool.ts';
import { messageStream } from './message-stream.ts';

/** How the generation of a caller words its answers. */
export interface CallAnswers {
  result(end: McpCallEnd): Json;
  /** A call whose caller is told over the connection that it keeps open. */
  readonly options: Pick<McpCallOptions, 'mayBecomeTask' | 'gone' | 'underway'>;
}

export interface ToolCallDeps {
  readonly log: Pick<Logger, 'error'>;
  readonly clock: Pick<Clock, 'after'>;
}

/** What becomes of an error once the answer has begun. */
const streamFailure = (error: unknown, context: CallContext, log: Pick<Logger, 'error'>): RpcError => {
  if (error instanceof RpcError) return error;
  if (error instanceof AcpError && error.code !== 'internal')
    return new RpcError(rpcCodes.internalError, error.message, { code: error.code, status: error.status });
  if (!isRunFailure(error)) log.error({ requestId: context.requestId, error }, 'The request failed');
  return new RpcError(rpcCodes.internalError, 'The service failed.', { requestId: context.requestId });
};

const tokenOf = ({ params }: RpcRequest): string | number | null => {
  const { progressToken } = metaOf(params);
  return typeof progressToken === 'string' || typeof progressToken === 'number' ? progressToken : null;
};

/** Whether the caller reads a stream; that it takes anything does not say so. */
export const readsStreams = (accept: string | undefined): boolean =>
  accept?.includes('text/event-stream') === true && accepts(accept, 'text/event-stream');

// Programs and proxies give up a request on which nothing comes for a minute, or for five.
const quietMs = 10_000;

/**
 * The answer of a tool: a stream where the caller counts progress and reads one, or reads one and has waited for a while, else
 * one message. Throws what HTTP or the protocol has an answer for, as long as nothing has begun.
 */
export const callTool = async (
  context: McpCallContext,
  request: RpcRequest,
  accept: string | undefined,
  { tool, args }: { readonly tool: McpTool; readonly args: RpcRequest['params'] },
  answers: CallAnswers,
  { log, clock }: ToolCallDeps,
): Promise<StreamReply | { readonly status: 200; readonly body: Json }> => {
  const { id } = request;
  const token = tokenOf(request);
  const options = answers.options;
  const answer = async (more: Partial<McpCallOptions>): Promise<Json> =>
    rpcResult(
      id,
      answers.result(await tool.call(context, args, { ...options, onProgress: null, ...more })),
    ) as unknown as Json;
  if (!readsStreams(accept)) return { status: 200, body: await answer({}) };
  // It may become one while the tool works, when it is too late to refuse it.
  context.openStream?.();
  const { send, end, reply } = messageStream();
  const begun = Promise.withResolvers<null>();
  let work: Promise<Json>;
  if (token === null) {
    work = answer({});
    const quiet = clock.after(quietMs, () => begun.resolve(null));
    const stop = (): void => quiet.stop();
    work.then(stop, stop);
  } else {
    let progress = 0;
    work = answer({
      onProgress() {
        progress += 1;
        send(rpcNotification('notifications/progress', { progressToken: token, progress }));
      },
      underway(cancel) {
        begun.resolve(null);
        return options.underway(cancel);
      },
    });
  }
  const body = await Promise.race([begun.promise, work]);
  if (token === null && body !== null) return { status: 200, body };
  void work
    .catch((error: unknown) => rpcFailure(id, streamFailure(error, context, log)))
    .then((message) => {
      send(message);
      end();
    });
  return reply;
};
