import type { ModelToolCall } from '../../../providers/models/model-provider.ts';
import type { ActiveRun } from '../../active-run.ts';
import { type ContentPart, isMade, type OpenCall } from '../../context/index.ts';
import type { WaitingCall } from '../../control/index.ts';
import { RunFailure } from '../../run-failure.ts';
import { isToolFailure, type ToolOutcome } from '../../tools/index.ts';
import type { ToolPorts } from '../turn-ports.ts';
import type { ChildCaller } from './agent-tool.ts';
import { resultPart } from './call-record.ts';
import { type CallLine, sideBySide } from './side-by-side.ts';
import { clientCall, runCall } from './tool-invocation.ts';

/** Failed calls in a row; kept over the turns of a run. */
export interface ErrorStreak {
  count: number;
}

const countStreak = (streak: ErrorStreak, outcome: ToolOutcome, call: ModelToolCall, ports: ToolPorts): void => {
  if (outcome.status === 'succeeded') streak.count = 0;
  if (!isToolFailure(outcome.status)) return;
  streak.count += 1;
  if (streak.count <= ports.settings.maxConsecutiveToolErrors) return;
  if (outcome.status === 'timed_out')
    throw new RunFailure(
      'ToolTimeout',
      'tool_timeout',
      `Tool "${call.toolName}" timed out, as the last of ${streak.count} failed calls in a row.`,
    );
  throw new RunFailure(
    'ToolError',
    'tool_error',
    `Tool "${call.toolName}" failed, as the last of ${streak.count} failed calls in a row.`,
  );
};

export interface ToolTurn {
  /** In the model's order. */
  readonly parts: readonly ContentPart[];
  readonly waiting: readonly WaitingCall[];
}

/**
 * The calls of one model turn, one after another or side by side. A call that waits stops none of the others: they run
 * before the run closes.
 */
export const toolTurn = async (
  run: ActiveRun,
  ports: ToolPorts,
  calls: readonly OpenCall[],
  children: ChildCaller,
  streak: ErrorStreak,
): Promise<ToolTurn> => {
  const waiting: WaitingCall[] = [];
  const runOne = async (open: OpenCall, line: CallLine | null): Promise<ContentPart | null> => {
    const { call, answer } = open;
    if (typeof answer !== 'string' && answer.type === 'ToolResult') return answer;
    const called =
      typeof answer !== 'string' && answer.type === 'ClientResult'
        ? clientCall(run, ports, open, answer)
        : await runCall(run, ports, open, children, line);
    if (called.waiting.length > 0) {
      waiting.push(...called.waiting);
      return null;
    }
    countStreak(streak, called.outcome, call, ports);
    return resultPart(call, called.outcome);
  };
  const turn = (parts: readonly (ContentPart | null)[]): ToolTurn => ({
    parts: parts.filter((part) => part !== null),
    // Side by side they come as their checks end; they are told in the model's order.
    waiting: calls.flatMap(({ call }) => waiting.filter((held) => held.call === call)),
  });
  if (run.plan.agent.model.allowConcurrentToolCalls) return turn(await sideBySide(calls, run.signal, runOne));
  const parts: (ContentPart | null)[] = [];
  for (const open of calls) {
    if (run.signal.aborted && isMade(open)) continue;
    parts.push(await runOne(open, null));
  }
  return turn(parts);
};
