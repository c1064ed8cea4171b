import type { RunErrorClass } from '../../contract/run-outcome.ts';
import type { CompiledAgent } from '../../engine/compiled-agent.ts';
import { attachmentsIn } from '../../engine/context/index.ts';
import { promptHasher, promptParts } from '../../engine/record/index.ts';
import { RunFailure } from '../../engine/run-failure.ts';
import { ModelCallError } from '../../providers/models/model-error.ts';
import type {
  ModelCall,
  ModelCatalogEntry,
  ModelFinishReason,
  ModelPart,
  ModelProvider,
} from '../../providers/models/model-provider.ts';
import { unreportedUsage } from '../../providers/models/model-usage.ts';
import type { BundledRun, BundleStep } from './bundle.format.ts';
import type { Difference, StepReport } from './replay-report.ts';

/** What ends a repeated run where its recording ends. */
export const recordingEnds = 'recording_ended';

export const recordingEnded = (message: string): RunFailure => new RunFailure('Unknown', recordingEnds, message);

const plainEntry: ModelCatalogEntry = {
  name: '',
  displayName: null,
  contextWindowTokens: null,
  maxOutputTokens: null,
  supportsStreaming: true,
  supportsTools: true,
  supportsReasoning: true,
  supportsStructuredOutput: null,
  inputCostPerMillionTokens: null,
  outputCostPerMillionTokens: null,
  cachedInputCostPerMillionTokens: null,
};

const finishOf = (reason: string): ModelFinishReason =>
  reason === 'Length' || reason === 'ContentFilter' || reason === 'ToolCalls' ? reason : 'Stop';

const partsOf = (answer: NonNullable<BundleStep['answer']>): ModelPart[] => [
  ...(answer.text === '' ? [] : [{ type: 'text-delta', text: answer.text } as const]),
  ...answer.toolCalls.map(
    ({ toolCallId, toolName, arguments: args }) =>
      ({ type: 'tool-call', toolCallId, toolName, input: JSON.stringify(args) }) as const,
  ),
  {
    type: 'finish',
    finishReason: finishOf(answer.finishReason),
    ...(answer.paused === true && { isPaused: true }),
    usage: answer.usage ?? unreportedUsage,
    responseModel: null,
  },
];

/** Attachments of the conversation whose content no hash is recorded of. */
const unknownAttachment = ({ start }: BundledRun): boolean =>
  attachmentsIn([...(start.history ?? []), ...(start.input ?? [])]).some(
    ({ attachmentId }) => start.attachments[attachmentId] === undefined,
  );

/** Marks have another length than the texts that they stand for, by which histories are measured. */
const redactedCompaction = 'The history is compacted by its length, which redacted texts do not have.';
const unknownContent = 'The messages have attachments of which no hash was recorded.';

/** A run that did not end by its own last answer stopped wherever it was. */
const ownEndings: ReadonlySet<string> = new Set(['tool_error', 'tool_timeout', 'structured_response_invalid']);

export const endedFromOutside = ({ record, steps }: BundledRun): boolean => {
  if (record.status === 'Completed') return false;
  // Without a model call it failed on what an earlier run had left open.
  return record.status !== 'Failed' || steps.length === 0 || !ownEndings.has(record.error?.type ?? '');
};

/**
 * A model that answers as the recorded one did, step by step, and notes where it is sent something else. A change of
 * the definition leads to other prompts; the answers stay those of the recording.
 */
export const createRecordedModel = (run: BundledRun, isRedacted: boolean) => {
  const steps: ReadonlyMap<number, BundleStep> = new Map(run.steps.map((step) => [step.number, step]));
  const hash = promptHasher();
  const reports = new Map<number, StepReport>();
  const tries = new Map<number, number>();
  /** Why a difference of the messages says nothing; null: it does. */
  let blindness = unknownAttachment(run) ? unknownContent : null;

  /** What the recording's service knew of the model that the run began with. */
  const catalog = (): readonly ModelCatalogEntry[] => {
    const { start, record } = run;
    const contextWindowTokens = start.compiled?.contextWindowTokens ?? null;
    if (contextWindowTokens === null || record.modelId === null) return [];
    return [{ ...plainEntry, name: record.modelId, contextWindowTokens }];
  };

  const compare = (step: BundleStep | undefined, provider: string, call: ModelCall): StepReport => {
    const number = call.callNumber;
    if (step === undefined)
      return { number, result: 'drifted', differences: [], reason: 'The recording has no such model call.' };
    const missing = (reason: string): StepReport => ({ number, result: 'missing', differences: [], reason });
    if (step.prompt === null) return missing(step.missing ?? 'What the model was sent was not recorded.');
    const sent = hash.prompt(provider, call);
    const recorded = step.prompt;
    const differences: Difference[] = promptParts.filter((part) => sent[part] !== recorded[part]);
    const isBlind = blindness !== null && differences.includes('messages');
    const seen = isBlind ? differences.filter((part) => part !== 'messages') : differences;
    if (seen.length > 0) return { number, result: 'drifted', differences: seen, reason: step.missing };
    if (step.missing !== null) return missing(step.missing);
    if (isBlind) return missing(blindness ?? '');
    return { number, result: 'identical', differences: [], reason: null };
  };

  const answer = (provider: string, call: ModelCall): readonly ModelPart[] => {
    const { callNumber } = call;
    // The service's own calls, for judges and summaries, are answered before they come here.
    if (callNumber === 0)
      throw recordingEnded('The recording has no answer to a call that the service makes for itself.');
    const step = steps.get(callNumber);
    if (step === undefined && endedFromOutside(run)) throw recordingEnded('The recorded run was ended here.');
    if (!reports.has(callNumber)) reports.set(callNumber, compare(step, provider, call));
    if (step === undefined) throw recordingEnded('The recording has no further model call.');
    const earlier = tries.get(callNumber) ?? 0;
    tries.set(callNumber, earlier + 1);
    if (step.fallbacks[earlier] !== undefined)
      throw new ModelCallError('provider_unavailable', 'The recorded call failed and another model was asked.', {
        provider,
      });
    const { answer, failure, missing } = step;
    if (answer !== null) return partsOf(answer);
    if (failure !== null) throw new RunFailure(failure.class as RunErrorClass, failure.type, failure.message);
    throw recordingEnded(missing ?? 'The recording has no answer to this call.');
  };

  return {
    /** Called with the agent before its run: what it cannot repeat is not compared. */
    prepare({ compaction }: Pick<CompiledAgent, 'compaction'>): void {
      if (isRedacted && compaction !== null) blindness ??= redactedCompaction;
    },
    /** In the order of the steps; steps that were not reached are missing, for the reason that ended the run. */
    reports(ending: string | null): StepReport[] {
      const reached = [...reports.values()].sort((a, b) => a.number - b.number);
      const left = run.steps.filter((step) => !reports.has(step.number));
      return [
        ...reached,
        ...left.map(
          ({ number, missing }): StepReport => ({
            number,
            result: 'missing',
            differences: [],
            reason: missing ?? ending ?? 'The replay did not come this far.',
          }),
        ),
      ];
    },
    /** The same model under every name that a definition may have for it. */
    provider(name: string): ModelProvider {
      const generate = async (call: ModelCall): Promise<readonly ModelPart[]> => answer(name, call);
      return {
        name,
        kind: 'scripted',
        displayName: null,
        defaultModel: null,
        catalog: catalog(),
        generate,
        async *stream(call) {
          yield* await generate(call);
        },
      };
    },
  };
};

export type RecordedModel = ReturnType<typeof createRecordedModel>;
