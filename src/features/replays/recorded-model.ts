import type { RunErrorClass } from '../../contract/run-outcome.ts';
import { promptHasher, promptParts } from '../../engine/prompt-hashes.ts';
import { RunFailure } from '../../engine/run-failure.ts';
import { noUsage } from '../../engine/usage.ts';
import { ModelCallError } from '../../providers/models/model-error.ts';
import type { ModelCall, ModelFinishReason, ModelPart, ModelProvider } from '../../providers/models/model-provider.ts';
import type { BundledRun, BundleStep } from './bundle.format.ts';
import type { Difference, StepReport } from './replay-report.ts';

/** What ends a repeated run where its recording ends. */
export const recordingEnds = 'recording_ended';

const ended = (message: string): RunFailure => new RunFailure('Unknown', recordingEnds, message);

const finishOf = (reason: string): ModelFinishReason =>
  reason === 'Length' || reason === 'ContentFilter' || reason === 'ToolCalls' ? reason : 'Stop';

const partsOf = (answer: NonNullable<BundleStep['answer']>): ModelPart[] => [
  ...(answer.text === '' ? [] : [{ type: 'text-delta', text: answer.text } as const]),
  ...answer.toolCalls.map(
    ({ toolCallId, toolName, arguments: args }) =>
      ({ type: 'tool-call', toolCallId, toolName, input: JSON.stringify(args) }) as const,
  ),
  { type: 'finish', finishReason: finishOf(answer.finishReason), usage: answer.usage ?? noUsage, responseModel: null },
];

const hasAttachment = ({ start }: BundledRun): boolean =>
  [...(start.input ?? []), ...(start.history ?? [])].some(({ contents }) =>
    contents.some((part) => part.type === 'Attachment'),
  );

/**
 * A model that answers as the recorded one did, step by step, and notes where it is sent something else. A change of
 * the definition leads to other prompts; the answers stay those of the recording.
 */
export class RecordedModel {
  readonly #run: BundledRun;
  readonly #hash = promptHasher();
  readonly #reports = new Map<number, StepReport>();
  readonly #tries = new Map<number, number>();
  readonly #blind: boolean;
  #utility = 0;

  constructor(run: BundledRun) {
    this.#run = run;
    this.#blind = hasAttachment(run);
  }

  /** In the order of the steps; steps that were not reached are missing. */
  reports(): StepReport[] {
    const reached = [...this.#reports.values()].sort((a, b) => a.number - b.number);
    const left = this.#run.steps.filter((step) => !this.#reports.has(step.number));
    return [
      ...reached,
      ...left.map(
        ({ number, missing }): StepReport => ({
          number,
          result: 'missing',
          differences: [],
          reason: missing ?? 'The replay did not come this far.',
        }),
      ),
    ];
  }

  /** The same model under every name that a definition may have for it. */
  provider(name: string): ModelProvider {
    const generate = async (call: ModelCall): Promise<readonly ModelPart[]> => this.#answer(name, call);
    return {
      name,
      kind: 'scripted',
      displayName: null,
      defaultModel: null,
      catalog: [],
      generate,
      async *stream(call) {
        yield* await generate(call);
      },
    };
  }

  #answer(provider: string, call: ModelCall): readonly ModelPart[] {
    if (call.callNumber === 0) return this.#utilityAnswer();
    const step = this.#run.steps[call.callNumber - 1];
    if (!this.#reports.has(call.callNumber)) this.#reports.set(call.callNumber, this.#compare(step, provider, call));
    if (step === undefined) throw ended('The recording has no further model call.');
    const tries = this.#tries.get(call.callNumber) ?? 0;
    this.#tries.set(call.callNumber, tries + 1);
    if (step.fallbacks[tries] !== undefined)
      throw new ModelCallError('provider_unavailable', 'The recorded call failed and another model was asked.', {
        provider,
      });
    const { answer, failure, missing } = step;
    if (answer !== null) return partsOf(answer);
    if (failure !== null) throw new RunFailure(failure.class as RunErrorClass, failure.type, failure.message);
    throw ended(missing ?? 'The recording has no answer to this call.');
  }

  #utilityAnswer(): readonly ModelPart[] {
    const text = this.#run.start.utility[this.#utility];
    this.#utility += 1;
    if (text === undefined) throw ended('The recording has no answer to a call that the service makes for itself.');
    return partsOf({ text, toolCalls: [], finishReason: 'Stop', usage: null });
  }

  #compare(step: BundleStep | undefined, provider: string, call: ModelCall): StepReport {
    const number = call.callNumber;
    if (step === undefined)
      return { number, result: 'drifted', differences: [], reason: 'The recording has no such model call.' };
    const missing = (reason: string): StepReport => ({ number, result: 'missing', differences: [], reason });
    if (step.prompt === null) return missing(step.missing ?? 'What the model was sent was not recorded.');
    const sent = this.#hash(provider, call);
    const recorded = step.prompt;
    const differences: Difference[] = promptParts.filter((part) => sent[part] !== recorded[part]);
    const seen = this.#blind ? differences.filter((part) => part !== 'messages') : differences;
    if (seen.length > 0) return { number, result: 'drifted', differences: seen, reason: step.missing };
    if (step.missing !== null) return missing(step.missing);
    if (this.#blind) return missing('The messages have attachments, whose content is not in the bundle.');
    return { number, result: 'identical', differences: [], reason: null };
  }
}
