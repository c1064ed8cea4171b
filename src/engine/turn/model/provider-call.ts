import { spanTime } from '../../../core/telemetry/span.ts';
import { traceHeaders } from '../../../core/telemetry/trace-context.ts';
import { ModelCallError } from '../../../providers/models/model-error.ts';
import type { ModelCall, ModelFinish } from '../../../providers/models/model-provider.ts';
import type { OpenedProvider } from '../../../providers/models/provider-access.ts';
import type { ActiveRun } from '../../active-run.ts';
import type { CompiledTarget } from '../../compiled-agent.ts';
import { conventionalFinish, conventionalProvider, failedFinish, sensitiveText } from '../../record/index.ts';
import type { ModelPorts } from '../turn-ports.ts';

/** Does the call. `firstPart` is called when a streamed answer begins. */
export type CallWork = (call: ModelCall, firstPart: () => void) => Promise<ModelFinish | null>;

/** What is told of a call beside what the provider is sent. */
export interface CallPlace {
  /** The binding's model is 1, its fallbacks count from 2. */
  readonly attempt: number;
  /** The answer is asked for in parts. */
  readonly streams: boolean;
}

const errorTypeOf = (error: unknown): string => (error instanceof ModelCallError ? error.type : 'internal');

const openSpan = ({ trace, plan }: ActiveRun, { provider }: CompiledTarget, call: ModelCall, place: CallPlace) =>
  trace?.open('acp.model.call', 'Client', {
    'acp.tenant.id': trace.tenantId,
    'gen_ai.operation.name': call.vectors === undefined ? 'chat' : 'embeddings',
    'gen_ai.provider.name': conventionalProvider(provider),
    'gen_ai.request.model': call.model,
    'gen_ai.request.temperature': call.temperature,
    'gen_ai.request.top_p': call.topP,
    'gen_ai.request.max_tokens': call.maxOutputTokens,
    // The convention takes a call without it for one that does not stream.
    'gen_ai.request.stream': place.streams ? true : null,
    'gen_ai.conversation.id': plan.sessionId,
    'acp.model.attempt': place.attempt,
    'acp.model.fallback': place.attempt > 1 ? true : null,
  }) ?? null;

const finished = ({ finishReason, usage, responseModel }: ModelFinish) => ({
  'gen_ai.response.model': responseModel,
  'gen_ai.response.finish_reasons': conventionalFinish[finishReason],
  'acp.model.finish_reason': finishReason,
  'gen_ai.usage.input_tokens': usage.inputTokens,
  'gen_ai.usage.output_tokens': usage.outputTokens,
  'gen_ai.usage.cache_read.input_tokens': usage.cachedInputTokens,
  'gen_ai.usage.reasoning.output_tokens': usage.reasoningTokens,
});

/**
 * Every call of a model: admitted by the breaker and the limit, which learn what came of it; with a span, whose context
 * goes with the request, and its times.
 */
export const callProvider = async (
  run: ActiveRun,
  ports: Pick<ModelPorts, 'protection' | 'metrics' | 'telemetry' | 'settings'>,
  target: CompiledTarget,
  { owner }: OpenedProvider,
  call: ModelCall,
  place: CallPlace,
  work: CallWork,
): Promise<void> => {
  const { protection, metrics } = ports;
  run.hasActed = true;
  const span = openSpan(run, target, call, place);
  if (run.trace !== null) run.trace.modelCall = span;
  const sensitive = span !== null && ports.telemetry.settings.recordSensitiveData;
  if (sensitive) span.set({ 'gen_ai.input.messages': sensitiveText(call.prompt, ports.settings.recording) });
  const startedAt = spanTime();
  let errorType: string | null = null;
  try {
    const admitted = protection.admit(target.provider.name, owner, call.signal);
    if (admitted instanceof Promise) run.waits.enter();
    const permit = admitted instanceof Promise ? await admitted.finally(() => run.waits.leave()) : admitted;
    try {
      const observed: ModelCall = {
        ...call,
        trace: span === null ? null : traceHeaders(span),
        wire: run.waits,
      };
      const finish = await work(observed, () => metrics.firstPart(target, spanTime() - startedAt));
      permit.succeeded();
      if (finish !== null) span?.set(finished(finish));
    } catch (error) {
      permit.failed(error);
      throw error;
    }
  } catch (error) {
    errorType = errorTypeOf(error);
    span?.set({ 'gen_ai.response.finish_reasons': failedFinish });
    throw error;
  } finally {
    metrics.modelCalled(target, errorType, spanTime() - startedAt);
    if (span !== null) run.trace?.close(span, errorType);
  }
};
