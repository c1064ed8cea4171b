import type { ActiveRun, RemoteWork } from '../active-run.ts';
import { newMessage } from '../context/index.ts';
import { guardedText } from '../control/index.ts';
import { traceparentOf } from '../record/index.ts';
import { RunFailure } from '../run-failure.ts';
import { type RemoteTask, remoteFailureType, ToolStop } from '../tools/index.ts';
import type { LoopResult } from './agent-loop.ts';
import { spansBelow } from './calls/tool-span.ts';
import type { TurnPorts } from './turn-ports.ts';

/** What a run has of its task before the other system has said anything. */
export const unsentTask = (agent: string): RemoteTask => ({ agent, taskId: null, contextId: null, state: null });

/** Keeps what is known of the task, with an event for whoever follows the run. Told again, it is kept once. */
const keepTask = (run: ActiveRun, ports: TurnPorts) => {
  let last = '';
  return (task: RemoteTask): void => {
    const text = JSON.stringify(task);
    if (text === last) return;
    last = text;
    run.log.append('custom', { customType: 'acp.remote-task', payload: task });
    // A lost record is logged by the log itself.
    run.log.write([ports.journal.remoteTask(run.plan.tenantId, run.id, text)]).catch(() => undefined);
  };
};

/** The turn of a run that another system executes: its message goes there, and what comes back is the answer. */
export const remoteTurn = async (run: ActiveRun, ports: TurnPorts, work: RemoteWork): Promise<LoopResult> => {
  const { agent, idempotencyKey, saveAttachment } = work;
  const { tenantId, requestId, message } = run.plan;
  const span = run.trace?.span ?? null;
  run.hasActed = true;
  let said: string;
  try {
    said = await agent.answer({
      ...{ tenantId, requestId, runId: run.id, message: message ?? '', idempotencyKey, saveAttachment },
      signal: run.signal,
      told: keepTask(run, ports),
      ...traceparentOf(span),
      ...spansBelow(run, span),
    });
  } catch (error) {
    if (!(error instanceof ToolStop)) throw error;
    throw new RunFailure('ToolError', remoteFailureType, error.message, { cause: error.cause });
  }
  run.signal.throwIfAborted();
  const place = { source: 'RemoteTool', toolSource: agent.name } as const;
  const output = await guardedText(run, ports.guards, said, place);
  const messageId = ports.newId();
  run.messages.push(newMessage(run.id, messageId, 'Assistant', ports.now(), [{ type: 'Text', text: output }]));
  run.log.append('message.completed', { messageId, text: output, finishReason: 'Stop' });
  return { output, finishReason: 'Stop' };
};
