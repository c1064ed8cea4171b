import type { Json } from '../../contract/schema.ts';
import { parsedJson } from '../../core/documents/json-depth.ts';
import { withTimeLimit } from '../../core/time-limit.ts';
import type { ModelResponseFormat } from '../../providers/models/model-provider.ts';
import type { ActiveRun } from '../active-run.ts';
import type { AnswerRejection } from '../context/index.ts';
import { RunFailure } from '../run-failure.ts';
import { argumentsChecker, cutText, maxToolErrorLength } from '../tools/index.ts';
import { answerContext, type StructuredResponseValidator } from './answer-checks.ts';
import type { AnswerPorts } from './turn-ports.ts';

type RejectionReason = 'NotJson' | 'SchemaMismatch' | 'ValidatorRejected';

const rejection = (reason: RejectionReason, messages: readonly string[]): AnswerRejection => ({
  reason,
  repair: [
    'Your answer was not accepted:',
    ...messages.map((message) => `- ${message}`),
    'Answer again, with the corrected JSON alone.',
  ].join('\n'),
});

const validatorMs = 5000;

const jsonFormat = (run: ActiveRun): ModelResponseFormat | null => {
  const format = run.plan.agent.model.responseFormat;
  return format?.kind === 'Json' || format?.kind === 'JsonSchema' ? format : null;
};

/** False: every answer is accepted as it is. */
export const asksForFormat = (run: ActiveRun): boolean =>
  jsonFormat(run) !== null || (run.plan.replay?.decisions?.rejection ?? null) !== null;

/** The answer as JSON where the agent's format asks for it; null when it does not parse. */
export const structuredOutput = (run: ActiveRun, output: string): unknown =>
  jsonFormat(run) === null ? null : (parsedJson(output) ?? null);

const answerWords = { whole: 'the answer', member: 'member', recursion: 'refused' } as const;

// Compiling a schema costs more than an answer; a format lives as long as its compiled agent.
const checkers = new WeakMap<ModelResponseFormat, ReturnType<typeof argumentsChecker>>();

const schemaMessages = (format: ModelResponseFormat, answer: Json): string[] => {
  const { schema } = format;
  if (schema === undefined) return [];
  return checkers.getOrInsertComputed(format, () => argumentsChecker(schema as Json, answerWords))(answer);
};

/** What the validator of a module says of an answer; its message is for the model, as the host wrote it. */
const ask = async (
  validate: StructuredResponseValidator,
  answer: Json,
  run: ActiveRun,
  ports: AnswerPorts,
): Promise<AnswerRejection | null> => {
  try {
    await withTimeLimit(validatorMs, () => validate(answer, answerContext(run)));
    return null;
  } catch (error) {
    ports.log.warn(
      { runId: run.id, requestId: run.plan.requestId, error },
      'The validator of a module rejected an answer',
    );
    const message = error instanceof Error ? error.message : String(error);
    return rejection('ValidatorRejected', [cutText(message, maxToolErrorLength)]);
  }
};

/** Null: the answer is accepted, or nothing is asked of it. */
const rejectionOf = async (run: ActiveRun, ports: AnswerPorts, output: string): Promise<AnswerRejection | null> => {
  const recorded = run.plan.replay?.decisions?.rejection ?? null;
  if (recorded !== null) return recorded();
  const format = jsonFormat(run);
  if (format === null || !ports.settings.structuredResponse.enabled) return null;
  const answer = parsedJson(output);
  if (answer === undefined) return rejection('NotJson', ['It is not valid JSON.']);
  const messages = schemaMessages(format, answer);
  if (messages.length > 0) return rejection('SchemaMismatch', messages);
  const validate = ports.structuredResponseValidators.get(run.plan.agent.name);
  return validate === undefined ? null : ask(validate, answer, run, ports);
};

/** A caller's stream has shown the answer already, and a session would keep what was wrong. */
const suppressedBy = (run: ActiveRun): 'Streaming' | 'Session' | null => {
  // The answer of a called agent goes to its caller's model, in whose stream it does not stand.
  if (run.plan.isStreaming && run.plan.parent === null) return 'Streaming';
  return run.plan.sessionId === null ? null : 'Session';
};

/**
 * The final answer once it is accepted. A rejected one is asked for again, as often as is allowed: `repair` gives the
 * model its next input and returns its next answer. Throws RunFailure of class StructuredResponseInvalid.
 */
export const acceptedAnswer = async <A extends { readonly output: string }>(
  run: ActiveRun,
  ports: AnswerPorts,
  first: A,
  repair: (input: string) => Promise<A>,
): Promise<A> => {
  const { maxRepairAttempts } = ports.settings.structuredResponse;
  const suppressed = maxRepairAttempts === 0 ? null : suppressedBy(run);
  const maxAttempts = suppressed === null ? maxRepairAttempts : 0;
  let answer = first;
  for (let attempt = 1; ; attempt += 1) {
    const rejected = await rejectionOf(run, ports, answer.output);
    if (rejected === null) return answer;
    const format = run.plan.agent.model.responseFormat;
    run.log.append('structured-response.rejected', {
      reason: rejected.reason,
      kind: format?.kind ?? null,
      schemaName: format?.name ?? null,
      provider: run.target.provider.name,
      model: run.target.model,
      repairSuppressedBy: suppressed,
    });
    if (attempt > maxAttempts)
      throw new RunFailure(
        'StructuredResponseInvalid',
        'structured_response_invalid',
        `The answer of agent "${run.plan.agent.name}" does not have the format that was asked for (${rejected.reason}).`,
      );
    run.log.append('structured-response.repair-attempted', { attempt, maxAttempts });
    answer = await repair(rejected.repair);
  }
};
