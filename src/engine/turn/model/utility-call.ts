import type { ModelCall, ModelFinish, ModelPart, ModelPrompt } from '../../../providers/models/model-provider.ts';
import type { ActiveRun } from '../../active-run.ts';
import type { CompiledBinding } from '../../compiled-agent.ts';
import { callWithinQuotas, guardedText } from '../../control/index.ts';
import { RunFailure } from '../../run-failure.ts';
import type { ModelPorts } from '../turn-ports.ts';
import { addCallUsage, announceUsage } from './call-usage.ts';
import { callProvider } from './provider-call.ts';

/** No turn of the run: rules of a scripted model that ask for a call's number do not mean it. */
const callNumber = 0;

/**
 * A model call that the service makes for a run, such as a summary: within the run's budget, its usage and cost added
 * to the run, its text seen by nobody but the caller. Throws ModelCallError, or RunFailure when the budget is used up.
 */
export const utilityCall = async (
  run: ActiveRun,
  ports: ModelPorts,
  model: CompiledBinding,
  ask: { readonly instructions: string; readonly text: string },
): Promise<string> => {
  run.budget.check();
  const prompt: ModelPrompt = [
    { role: 'system', content: ask.instructions },
    { role: 'user', content: [{ type: 'text', text: ask.text }] },
  ];
  const call: ModelCall = {
    model: model.model,
    prompt,
    tools: [],
    toolChoice: 'none',
    temperature: model.temperature,
    topP: model.topP,
    maxOutputTokens: model.maxOutputTokens,
    reasoningEffort: model.reasoningEffort,
    responseFormat: null,
    settings: model.settings,
    parallelToolCalls: false,
    signal: run.signal,
    callNumber,
    requestId: run.plan.requestId,
  };
  const reading = ports.access.current();
  if (reading !== null) await reading;
  const opened = ports.access.open(run.plan.tenantId, model.provider);
  let parts: readonly ModelPart[] = [];
  let mayBeCut = false;
  await callWithinQuotas(run, ports, model, call, async (allowed, isCut) => {
    mayBeCut = isCut;
    let finish: ModelFinish | null = null;
    await callProvider(run, ports, model, opened, allowed, { attempt: 1, streams: false }, async (sent) => {
      parts = await opened.provider.generate(sent);
      finish = parts.find((part) => part.type === 'finish') ?? null;
      return finish;
    });
    return finish;
  });
  let text = '';
  for (const part of parts) {
    if (part.type === 'text-delta') text += part.text;
    if (part.type === 'finish') {
      addCallUsage(run, ports, model, part);
      announceUsage(run, ports);
      // A session would keep half a summary for good.
      if (mayBeCut && part.finishReason === 'Length')
        throw new RunFailure('QuotaExceeded', 'quota_exceeded', 'What is left of a quota has cut the answer short.');
    }
  }
  if (ports.guards === null) return text;
  return guardedText(run, ports.guards, text, { source: 'ModelOutput', span: run.trace?.modelCall ?? null });
};
