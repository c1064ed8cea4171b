import type { CompiledAgent } from '../../engine/compiled-agent.ts';
import type { AnswerRejection, RecordedDecisions } from '../../engine/context/index.ts';
import type { RunFailure } from '../../engine/run-failure.ts';
import type { BundledRun } from './bundle.format.ts';

export interface DecidingAgents {
  /** As the recorded run had it, and as it is now. */
  readonly before: CompiledAgent;
  readonly after: CompiledAgent;
  /** The answers are marks, by which nothing can be decided. */
  readonly isRedacted: boolean;
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

const eventsOf = ({ events }: BundledRun, type: string) => events.filter((event) => event['type'] === type);

/**
 * What the service decided between the answers of a recorded run: whether its loop went on, which answers it rejected,
 * what its summaries said. A changed rule is applied to the recorded answers where that takes no model and no module.
 */
export const recordedDecisions = (
  run: BundledRun,
  { before, after, isRedacted }: DecidingAgents,
  ended: (message: string) => RunFailure,
): RecordedDecisions => {
  const inputs = [...run.start.inputs];
  const summaries = [...run.start.summaries];
  const iterations = eventsOf(run, 'loop.iteration-completed');
  const rejections = eventsOf(run, 'structured-response.rejected');
  const repairs = eventsOf(run, 'structured-response.repair-attempted').length;

  const nextInput = (): string => {
    const input = inputs.shift();
    if (input === undefined) throw ended('What the service told the model was not recorded.');
    return input;
  };

  const recordedLoop = (maxIterations: number) => {
    let index = 0;
    return {
      async next(): Promise<string | null> {
        const event = iterations[index];
        index += 1;
        if (event === undefined) throw ended('The recording has no further iteration of the loop.');
        if (Number(event['iteration']) >= maxIterations) return null;
        if (event['continued'] === true) return nextInput();
        if (event['ceilingReached'] === true)
          throw ended('The recorded loop ended at its ceiling, and the changed one goes on.');
        return null;
      },
    };
  };

  const loop = (): RecordedDecisions['loop'] => {
    if (after.loop === null) return null;
    const { criteria, maxIterations } = after.loop;
    if (before.loop !== null && same(before.loop.criteria, criteria)) return recordedLoop(maxIterations);
    if (!isRedacted && criteria.every(({ kind }) => kind === 'completionMarker')) return null;
    const [kind] = criteria
      .map((criterion) => criterion.kind)
      .filter((name) => isRedacted || name !== 'completionMarker');
    return {
      async next() {
        throw ended(`The criterion "${kind}" of the changed loop cannot be judged from the recording.`);
      },
    };
  };

  const rejection = (): RecordedDecisions['rejection'] => {
    const isChanged = !same(before.model.responseFormat, after.model.responseFormat);
    if (isChanged && rejections.length === 0) return null;
    if (isChanged && !isRedacted) return null;
    let index = 0;
    return (): AnswerRejection | null => {
      if (isChanged) throw ended('A changed response format cannot be checked against redacted answers.');
      const event = rejections[index];
      index += 1;
      if (event === undefined) return null;
      return { reason: String(event['reason']), repair: index <= repairs ? nextInput() : '' };
    };
  };

  return {
    loop: loop(),
    rejection: rejection(),
    summary() {
      const text = summaries.shift();
      if (text === undefined) throw ended('The recording has no summary of this part of the history.');
      return text;
    },
  };
};
