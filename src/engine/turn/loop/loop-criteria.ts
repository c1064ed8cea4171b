import { withTimeLimit } from '../../../core/time-limit.ts';
import type { ActiveRun } from '../../active-run.ts';
import type { builtInCriteria, LoopCriterion, LoopPlan } from '../../compiled-agent.ts';
import { taskText } from '../../context/index.ts';
import { answerContext } from '../answer-checks.ts';
import type { LoopPorts } from '../turn-ports.ts';
import { judge, type LoopVerdict } from './judge.ts';

export interface Evaluation {
  readonly run: ActiveRun;
  readonly ports: LoopPorts;
  readonly plan: LoopPlan;
  readonly criterion: LoopCriterion;
  readonly iteration: number;
  readonly answer: string;
}

type Evaluate = (evaluation: Evaluation) => LoopVerdict | Promise<LoopVerdict>;

const met: LoopVerdict = { met: true };
/** A criterion of a module may ask another system. */
const evaluatorMs = 30_000;

const completionMarker: Evaluate = ({ criterion, answer }) => {
  const marker = criterion.marker ?? '';
  if (answer.includes(marker)) return met;
  return { met: false, feedback: `Go on with the task. When it is done, end your answer with ${marker}.` };
};

const todoCompletion: Evaluate = async ({ run, ports, criterion }) => {
  const owner = { tenantId: run.plan.tenantId, sessionId: run.plan.sessionId, runId: run.id };
  if (criterion.modes.length > 0 && !criterion.modes.includes(await ports.memory.mode(owner))) return met;
  const open = await ports.memory.openTodos(owner);
  if (open.length === 0) return met;
  const list = open.map((text) => `- ${text}`).join('\n');
  return { met: false, feedback: `Entries of your todo list are still open:\n${list}\nGo on with them.` };
};

/** An agent that was called and not waited for to the end; waiting here saves a model call that could only wait. */
const backgroundTaskCompletion: Evaluate = async ({ run }) => {
  const running = [...run.children];
  if (running.length === 0) return met;
  const names = running.map((child) => `"${child.plan.agent.name}"`).join(', ');
  await Promise.race(running.map((child) => child.done));
  run.signal.throwIfAborted();
  return { met: false, feedback: `Agents that you called were still running: ${names}. Go on.` };
};

const aiJudge: Evaluate = ({ run, ports, plan, criterion, answer }) =>
  judge(run, ports, plan.judgeModel, {
    criteria: criterion.judgeCriteria,
    instructions: criterion.judgeInstructions,
    task: taskText(run),
    answer,
  });

const registered: Evaluate = async ({ run, ports, criterion, iteration, answer }) => {
  const evaluate = ports.loopCriteria.get(criterion.kind);
  if (evaluate === undefined) throw new Error(`No module registers the loop criterion "${criterion.kind}".`);
  return withTimeLimit(evaluatorMs, () =>
    evaluate({ ...answerContext(run), iteration, answer, criterion: { ...criterion } }),
  );
};

const builtIn: Readonly<Record<(typeof builtInCriteria)[number], Evaluate>> = {
  completionMarker,
  todoCompletion,
  aiJudge,
  backgroundTaskCompletion,
};

export const evaluateCriterion = (evaluation: Evaluation): LoopVerdict | Promise<LoopVerdict> => {
  const { kind } = evaluation.criterion;
  const evaluate = Object.hasOwn(builtIn, kind) ? builtIn[kind as keyof typeof builtIn] : registered;
  return evaluate(evaluation);
};
