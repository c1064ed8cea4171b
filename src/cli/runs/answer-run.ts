import { AcpError } from '../../contract/errors.ts';
import { visibleLine } from '../../text/text-width.ts';
import type { Session } from '../session.ts';
import { inBandCommands } from './next-commands.ts';
import { askAnswers, type RefusedAnswers } from './pause-prompt.ts';
import { reportPause } from './pause-report.ts';
import type { RunAnswers } from './run-answers.ts';
import { pausedExitCode } from './run-outcome.ts';
import type { FollowedRun, RunPause } from './run-pause.ts';

/** What goes on with the answers to a pause, on the same session. */
type GoOn = (sessionId: string, answers: RunAnswers) => Promise<FollowedRun>;

const remembers = ({ approvals }: RunAnswers): boolean => approvals?.some(({ remember }) => remember === true) === true;

const isWithoutAuthority = (error: unknown): error is AcpError =>
  error instanceof AcpError && (error.code === 'insufficient-role' || error.code === 'insufficient-scope');

// A person who meant another thing is not asked for ever; what waits can be answered later as well.
const maxRefusals = 5;

const resultPath = /^toolResults\[(\d+)\]\.result$/;

/** Why results were refused, by their place; null: the error is about something else. */
const misfits = (error: unknown): ReadonlyMap<number, readonly string[]> | null => {
  if (!(error instanceof AcpError) || error.code !== 'validation-failed') return null;
  const problems = (error.details.errors ?? []).map(({ path, message }) => ({
    index: resultPath.exec(path)?.[1],
    message,
  }));
  if (problems.length === 0 || problems.some(({ index }) => index === undefined)) return null;
  const byIndex = Map.groupBy(problems, ({ index }) => Number(index));
  return new Map([...byIndex].map(([index, found]) => [index, found.map(({ message }) => message)]));
};

interface Turn {
  readonly agentName: string;
  /** Options of `acp run` that the next turn needs as well. */
  readonly carried: readonly string[];
  readonly goOn: GoOn;
}

/** Asks about one pause and goes on with the answers, or tells with which code to leave. */
const answer = async (
  session: Session,
  pause: RunPause,
  turn: Turn,
  canRemember = true,
  refused: RefusedAnswers | null = null,
  refusals = 0,
): Promise<FollowedRun | { readonly leftWith: number }> => {
  const { terminal } = session;
  const answers = await askAnswers(terminal, turn.agentName, pause, canRemember, refused);
  if ('left' in answers) return { leftWith: answers.exitCode ?? pausedExitCode };
  try {
    return await turn.goOn(pause.sessionId, answers);
  } catch (error) {
    const wrong = misfits(error);
    if (wrong !== null && refusals < maxRefusals) {
      terminal.note(`${terminal.noteStyle.red('error:')} The answer was not taken:`);
      for (const reason of [...wrong.values()].flat()) terminal.note(`  it ${visibleLine(reason)}.`);
      const again = { results: answers.toolResults ?? [], wrong: new Set(wrong.keys()) };
      return answer(session, pause, turn, canRemember, again, refusals + 1);
    }
    // Refused as a whole: nothing is decided, so the same is asked again without what this caller may not do.
    if (!remembers(answers) || !isWithoutAuthority(error)) throw error;
    terminal.note(`${terminal.noteStyle.red('error:')} ${error.message} Nothing was decided.`);
    return answer(session, pause, turn, false);
  }
};

/**
 * Follows a run through its pauses: a person at a terminal is asked and the answers start the next run, as often as one
 * waits; everybody else is told what waits and which command answers it. Resolves with the exit code.
 */
export const answerPauses = async (session: Session, first: FollowedRun, turn: Turn): Promise<number> => {
  const { terminal, globals } = session;
  let run = first;
  while (run.pause !== null) {
    const { pause } = run;
    const commands = inBandCommands(globals, turn.agentName, pause, turn.carried);
    if (!terminal.canAsk || globals.json) {
      await reportPause(session, pause, commands);
      return run.exitCode;
    }
    const next = await answer(session, pause, turn);
    if ('leftWith' in next) {
      await reportPause(session, pause, commands, true);
      return next.leftWith;
    }
    run = next;
  }
  return run.exitCode;
};
