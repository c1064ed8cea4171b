import type { ActiveRun, RemoteWork } from '../active-run.ts';
import { newMessage } from '../context/index.ts';
import { guardedText } from '../control/index.ts';
import { RunFailure } from '../run-failure.ts';
import { type RemoteTask, remoteFailureType, ToolStop } from '../tools/index.ts';
import type { LoopResult } from './agent-loop.ts';
import { spansBelow } from './calls/tool-span.ts';
import type { TurnPorts } from './turn-ports.ts';

/** What a run has of its task before the other system has said anything. */
export const unsentTask = (agent: string): RemoteTask => ({ agent, taskId: null, contextId: null, state: null });

// Another system says of its task what it likes, as often as it likes.
const mostKept = 100;

/** Keeps what is known of the task, with an event for whoever follows the run. Told again, it is kept once. */
const taskKeeper = (run: ActiveRun, ports: TurnPorts) => {
  let last: RemoteTask | null = null;
  let kept = '';
  let count = 0;
  const keep = (): void => {
    const text = last === null ? '' : JSON.stringify(last);
    if (text === kept) return;
    kept = text;
    count += 1;
    run.log.append('custom', { customType: 'acp.remote-task', payload: last });
    // A lost record is logged by the log itself.
    run.log.write([ports.journal.remoteTask(run.plan.tenantId, run.id, text)]).catch(() => undefined);
  };
  return {
    told(task: RemoteTask): void {
      last = task;
      if (count < mostKept) keep();
    },
    /** Whatever was told in between, what was told last is kept. */
    end: keep,
  };
};

/** The turn of a run that another system executes: its message goes there, and what comes back is the answer. */
export const remoteTurn = async (run: ActiveRun, ports: TurnPorts, work: RemoteWork): Promise<LoopResult> => {
  const { agent, idempotencyKey, saveAttachment } = work;
  const { tenantId, requestId, message } = run.plan;
  const span = run.trace?.span ?? null;
  const keeper = taskKeeper(run, ports);
  run.hasActed = true;
  let said: string;
  try {
    said = await agent.answer({
      ...{ tenantId, requestId, runId: run.id, message: message ?? '', idempotencyKey, saveAttachment },
      signal: run.signal,
      told: keeper.told,
      ...spansBelow(run, span),
    });
  } catch (error) {
    if (!(error instanceof ToolStop)) throw error;
    throw new RunFailure('ToolError', remoteFailureType, error.message, { cause: error.cause });
  } finally {
    keeper.end();
  }
  run.signal.throwIfAborted();
  const place = { source: 'RemoteTool', toolSource: agent.id } as const;
  const output = await guardedText(run, ports.guards, said, place);
  const messageId = ports.newId();
  run.messages.push(newMessage(run.id, messageId, 'Assistant', ports.now(), [{ type: 'Text', text: output }]));
  run.log.append('message.completed', { messageId, text: output, finishReason: 'Stop' });
  return { output, finishReason: 'Stop' };
};
