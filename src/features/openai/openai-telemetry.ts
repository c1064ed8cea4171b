import type { CallContext } from '../../core/context.ts';
import { Span } from '../../core/telemetry/span.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { ActiveRun, RunOutcome } from '../../engine/active-run.ts';

type OperationName = 'chat' | 'invoke_agent' | 'embeddings';

/** What is told of requests of this API: on the request's own span, which the run's is a child of, and as metrics. */
export const createOpenAiTelemetry = ({ metrics }: Pick<Telemetry, 'metrics'>) => {
  const firstToken = metrics.histogram(
    'acp.openai.time_to_first_token',
    'Time from a streamed request to the first text of its answer.',
    's',
    [],
  );

  const describe = (
    { trace }: CallContext,
    name: OperationName,
    { plan }: ActiveRun,
    id: string,
    conversationId: string | null,
  ): Span | null => {
    if (!(trace instanceof Span)) return null;
    trace.set({
      'gen_ai.operation.name': name,
      'gen_ai.agent.name': plan.agent.name,
      'gen_ai.response.id': id,
      'gen_ai.conversation.id': conversationId,
    });
    return trace;
  };

  const ended = (span: Span, { finishReason, usage, error }: RunOutcome): void =>
    span.set({
      'gen_ai.response.finish_reasons': finishReason === null ? null : [finishReason],
      'gen_ai.usage.input_tokens': usage?.inputTokens,
      'gen_ai.usage.output_tokens': usage?.outputTokens,
      'error.type': error?.type,
    });

  /** Of a run that has begun, however it will end: the rest is told then. */
  const began = (
    context: CallContext,
    name: OperationName,
    run: ActiveRun,
    id: string,
    conversationId: string | null = null,
  ): void => {
    const span = describe(context, name, run, id, conversationId);
    if (span !== null) void run.done.then((outcome) => ended(span, outcome));
  };

  return {
    began,
    /** The same of one whose answer is streamed. */
    streams(...told: Parameters<typeof began>): void {
      began(...told);
      const [{ receivedAt }, , run] = told;
      if (receivedAt === undefined) return;
      const stop = run.log.subscribe(
        (frames) => {
          if (!frames.some(({ event }) => event === 'message.delta' || event === 'message.completed')) return;
          stop();
          firstToken.record((performance.now() - receivedAt) / 1000, []);
        },
        () => undefined,
      );
    },
  };
};

export type OpenAiTelemetry = ReturnType<typeof createOpenAiTelemetry>;
