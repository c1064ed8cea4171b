import type { ActiveRun, FinishReason } from '../active-run.ts';
import {
  type ChatMessage,
  type ContentPart,
  type Conversation,
  newMessage,
  type OpenCall,
  openCalls,
  openConversation,
  storedCall,
  toPrompt,
  withGiven,
  withResources,
} from '../context/index.ts';
import { guardedText, type Pause, pauseOf, type WaitingCall } from '../control/index.ts';
import { RunFailure } from '../run-failure.ts';
import type { ChildCaller } from './calls/agent-tool.ts';
import { type ErrorStreak, toolTurn } from './calls/tool-turn.ts';
import { createLoopControl } from './loop/loop-control.ts';
import { type ModelTurn, modelTurn } from './model/model-turn.ts';
import { utilityCall } from './model/utility-call.ts';
import { announceWithheld } from './model/withheld-tools.ts';
import { acceptedAnswer, asksForFormat } from './structured-response.ts';
import type { TurnPorts } from './turn-ports.ts';

export interface LoopResult {
  readonly output: string;
  readonly finishReason: FinishReason;
}

/** The user's message of this turn: its documents and attachments first, apart from the text. */
export const userMessage = (
  run: Pick<ActiveRun['plan'], 'id' | 'message' | 'documents' | 'attachments'>,
  messageId: string,
  now: number,
): ChatMessage =>
  newMessage(run.id, messageId, 'User', now, [
    ...run.documents.map(
      (document): ContentPart => ({ type: 'Document', name: document.name, text: document.content }),
    ),
    ...run.attachments.map((reference): ContentPart => ({ type: 'Attachment', ...reference })),
    { type: 'Text', text: run.message ?? '' },
  ]);

/** Stores the newest message of the turn with the events of the moment. A lost record is logged by the log itself. */
const keepMessage = (run: ActiveRun, calls: readonly OpenCall[]): void => {
  const message = run.messages.at(-1);
  if (run.steps === null || message === undefined) return;
  run.log.write([run.steps.message(message, calls.map(storedCall), run.usage, run.cost)]).catch(() => undefined);
};

const requestPart = ({ requestId, call, arguments: args }: WaitingCall): ContentPart => ({
  type: 'ApprovalRequest',
  requestId,
  toolCallId: call.toolCallId,
  toolName: call.toolName,
  arguments: args,
});

/** The next message of the run. */
const pushMessage = (
  run: ActiveRun,
  ports: TurnPorts,
  role: ChatMessage['role'],
  contents: readonly ContentPart[],
): void => {
  run.messages.push(newMessage(run.id, ports.newId(), role, ports.now(), contents));
};

/** Tells the model next, in place of the user, why the run goes on. */
const pushInput = async (run: ActiveRun, ports: TurnPorts, input: string): Promise<void> => {
  // From a criterion or a validator of a module, or from entries of the agent's memory.
  const text = ports.guards === null ? input : await guardedText(run, ports.guards, input, { source: 'Unknown' });
  run.callRecord?.told(text);
  pushMessage(run, ports, 'User', [{ type: 'Text', text }]);
};

const refuseFiltered = (run: ActiveRun, turn: ModelTurn): void => {
  if (turn.finish.finishReason === 'ContentFilter')
    throw new RunFailure(
      'ContentFiltered',
      'content_filtered',
      `Provider "${run.target.provider.name}" filtered the content.`,
    );
};

interface ModelTurns {
  readonly conversation: Conversation;
  /**
   * One call with the conversation as it is sent now; the answer is part of the run from then on. Its text begins with
   * that of the paused answers that it continues.
   */
  call(withTools: boolean, isRepair?: boolean): Promise<ModelTurn>;
}

const openTurns = async (run: ActiveRun, ports: TurnPorts): Promise<ModelTurns> => {
  const { tenantId, sessionId, id: runId, agent, culture, parameters } = run.plan;
  // Read once: a change in the run is in the result of its tool call.
  const mode = agent.hasModes ? await ports.memory.mode({ tenantId, sessionId, runId }) : null;
  const own = withGiven(agent.instructions(culture, parameters, mode), run.plan.given);
  const instructions = withResources(own, run.plan.resources ?? []);
  const conversation = openConversation(run, ports, (model, ask) => utilityCall(run, ports, model, ask), instructions);
  /** What the model has said in an answer that its provider has paused. */
  let begun = '';
  return {
    conversation,
    async call(withTools, isRepair = false) {
      const sending = conversation.toSend();
      const messages = sending instanceof Promise ? await sending : sending;
      const prompt = toPrompt(instructions, messages, run.attachments);
      const turn = await modelTurn(run, ports, prompt, withTools, isRepair);
      run.messages.push(newMessage(run.id, turn.messageId, 'Assistant', ports.now(), turn.contents));
      if (turn.toolCalls.length === 0) refuseFiltered(run, turn);
      const text = `${begun}${turn.text}`;
      begun = turn.finish.isPaused === true ? text : '';
      return { ...turn, text };
    },
  };
};

/** The answer in the format that the agent asks for; a rejected one is asked for again where that is allowed. */
const finalAnswer = (
  run: ActiveRun,
  ports: TurnPorts,
  turns: ModelTurns,
  answer: LoopResult,
): Promise<LoopResult> | LoopResult => {
  if (!asksForFormat(run)) return answer;
  return acceptedAnswer(run, ports, answer, async (input) => {
    run.bypassesCache = true;
    await pushInput(run, ports, input);
    const { text, finish } = await turns.call(false, true);
    return { output: text, finishReason: finish.finishReason };
  });
};

/** Answers the calls of a model turn; what has to wait is the run's pause. */
const answerCalls = async (
  run: ActiveRun,
  ports: TurnPorts,
  children: ChildCaller,
  streak: ErrorStreak,
  calls: readonly OpenCall[],
): Promise<Pause | null> => {
  const { parts, waiting } = await toolTurn(run, ports, calls, children, streak);
  if (parts.length > 0) pushMessage(run, ports, 'Tool', parts);
  // A tool that swallowed its abort signal must not lead to another model call.
  run.signal.throwIfAborted();
  const pause = pauseOf(waiting);
  if (pause?.status === 'AwaitingApproval') pushMessage(run, ports, 'Assistant', pause.calls.map(requestPart));
  return pause;
};

/** What comes before the first model call: the answers to calls that were open, then the user's next message. */
const openTurn = async (
  run: ActiveRun,
  next: ChatMessage | null,
  answer: (calls: readonly OpenCall[]) => Promise<Pause | null>,
): Promise<Pause | null> => {
  const open = run.plan.resume?.calls ?? [];
  const early = open.length > 0 ? await answer(open) : null;
  if (next !== null) {
    run.messages.push(next);
    keepMessage(run, []);
  }
  return early;
};

/** Why the run continues; null: it is done. A run at its cap of rounds ends, whatever its criteria say. */
const nextInput = async (
  loop: { next(text: string): Promise<string | null> } | null,
  { text }: ModelTurn,
  withTools: boolean,
): Promise<string | null> => (loop === null || !withTools ? null : loop.next(text));

/**
 * The loop: model, tools, model, … until an answer without tool calls, or the iteration cap; where the agent has loop
 * criteria, again until they are met. A resumed turn first answers the calls that were open; `next`, the user's next
 * message, follows them. A pause ends it early.
 */
export const agentLoop = async (
  run: ActiveRun,
  ports: TurnPorts,
  children: ChildCaller,
  next: ChatMessage | null,
): Promise<LoopResult | Pause> => {
  const { agent } = run.plan;
  announceWithheld(run, agent);
  const turns = await openTurns(run, ports);
  const loop =
    agent.loop === null ? null : (run.plan.replay?.decisions?.loop ?? createLoopControl(run, ports, agent.loop));
  const streak: ErrorStreak = { count: 0 };
  const answer = (calls: readonly OpenCall[]) => answerCalls(run, ports, children, streak, calls);
  const early = await openTurn(run, next, answer);
  if (early !== null) return early;
  for (let round = run.modelCalls; ; round += 1) {
    const withTools = round < (agent.maxIterations ?? ports.settings.maxIterations);
    const turn = await turns.call(withTools);
    if (turn.toolCalls.length > 0) {
      const calls = openCalls(run, turn.toolCalls, turn.keptInputs);
      keepMessage(run, calls);
      const pause = await answer(calls);
      if (pause !== null) return pause;
      continue;
    }
    if (turn.finish.isPaused === true && withTools) {
      // Sent back as it is, in a round of its own.
      keepMessage(run, []);
      continue;
    }
    const feedback = await nextInput(loop, turn, withTools);
    if (feedback === null) {
      const finishReason = withTools ? turn.finish.finishReason : 'Iterations';
      return finalAnswer(run, ports, turns, { output: turn.text, finishReason });
    }
    keepMessage(run, []);
    if (agent.loop?.freshContextPerIteration === true) turns.conversation.startFresh(run.messages.length);
    await pushInput(run, ports, feedback);
    keepMessage(run, []);
  }
};
