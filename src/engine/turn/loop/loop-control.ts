import type { ActiveRun } from '../../active-run.ts';
import type { LoopPlan } from '../../compiled-agent.ts';
import { isBlocked } from '../../run-failure.ts';
import type { LoopPorts } from '../turn-ports.ts';
import { evaluateCriterion } from './loop-criteria.ts';

const defaultFeedback = 'The task is not done yet. Go on.';

/** Decides after each answer whether the run goes on: criteria in their order, the first that is not met continues it. */
export const createLoopControl = (run: ActiveRun, ports: LoopPorts, plan: LoopPlan) => {
  // A resumed turn has the answers of earlier iterations, each followed by an input of the loop.
  let iteration = Math.max(0, run.messages.filter(({ role }) => role === 'User').length - 1);

  const announce = (members: {
    continuedBy: string | null;
    hasFeedback: boolean;
    failedCriterion: string | null;
    ceilingReached: boolean;
  }): void =>
    run.log.append('loop.iteration-completed', { iteration, continued: members.continuedBy !== null, ...members });

  return {
    /** The model's next input, or null: the run completes. */
    async next(answer: string): Promise<string | null> {
      iteration += 1;
      if (iteration >= plan.maxIterations) {
        announce({ continuedBy: null, hasFeedback: false, failedCriterion: null, ceilingReached: true });
        return null;
      }
      let failedCriterion: string | null = null;
      for (const criterion of plan.criteria) {
        try {
          const verdict = await evaluateCriterion({ run, ports, plan, criterion, iteration, answer });
          if (verdict.met) continue;
          const feedback = (verdict.feedback ?? '').trim();
          announce({
            continuedBy: criterion.kind,
            hasFeedback: feedback !== '',
            failedCriterion,
            ceilingReached: false,
          });
          return feedback === '' ? defaultFeedback : feedback;
        } catch (error) {
          if (run.signal.aborted || isBlocked(error)) throw error;
          // What cannot be judged must not keep a run going until its ceiling.
          failedCriterion = criterion.kind;
          ports.log.warn(
            { runId: run.id, requestId: run.plan.requestId, criterion: criterion.kind, error },
            'A criterion of a loop failed and counts as met',
          );
        }
      }
      announce({ continuedBy: null, hasFeedback: false, failedCriterion, ceilingReached: false });
      return null;
    },
  };
};
