import type { ActiveRun, FinishReason } from './active-run.ts';
import type { ChildCaller } from './agent-tool.ts';
import { type ChatMessage, type ContentPart, toPrompt } from './chat-message.ts';
import type { EnginePorts } from './engine-ports.ts';
import { isoTime } from './event-pack.ts';
import { type ModelTurn, modelTurn } from './model-turn.ts';
import { RunFailure } from './run-failure.ts';
import { type ErrorStreak, toolTurn } from './tool-turn.ts';
import { type OpenCall, openCalls } from './turn-resume.ts';

export interface LoopResult {
  readonly output: string;
  readonly finishReason: FinishReason;
}

/** The user's message of this turn: its documents and attachments first, apart from the text. */
export const userMessage = (
  run: Pick<ActiveRun['plan'], 'id' | 'message' | 'documents' | 'attachments'>,
  messageId: string,
  now: number,
): ChatMessage => ({
  messageId,
  role: 'User',
  runId: run.id,
  createdAt: isoTime(now),
  interrupted: false,
  contents: [
    ...run.documents.map(
      (document): ContentPart => ({ type: 'Document', name: document.name, text: document.content }),
    ),
    ...run.attachments.map((reference): ContentPart => ({ type: 'Attachment', ...reference })),
    { type: 'Text', text: run.message ?? '' },
  ],
});

const assistantMessage = (run: ActiveRun, turn: ModelTurn, now: number): ChatMessage => ({
  messageId: turn.messageId,
  role: 'Assistant',
  runId: run.id,
  createdAt: isoTime(now),
  interrupted: false,
  contents: turn.contents,
});

/** Stores the newest message of the turn with the events of the moment. A lost record is logged by the log itself. */
const keepMessage = (run: ActiveRun, calls: readonly OpenCall[]): void => {
  const message = run.messages.at(-1);
  if (run.steps === null || message === undefined) return;
  run.log.write([run.steps.message(message, calls, run.usage, run.cost)]).catch(() => undefined);
};

const toolMessage = (run: ActiveRun, ports: EnginePorts, contents: readonly ContentPart[]): ChatMessage => ({
  messageId: ports.newId(),
  role: 'Tool',
  runId: run.id,
  createdAt: isoTime(ports.now()),
  interrupted: false,
  contents,
});

/**
 * The loop: model, tools, model, … until an answer without tool calls, or the iteration cap. A resumed turn first
 * answers the calls that were open; `next`, the user's next message, follows them.
 */
export const agentLoop = async (
  run: ActiveRun,
  ports: EnginePorts,
  children: ChildCaller,
  next: ChatMessage | null,
): Promise<LoopResult> => {
  const { plan } = run;
  const instructions = plan.agent.instructions(plan.culture, plan.parameters);
  const history = run.session?.history ?? [];
  const streak: ErrorStreak = { count: 0 };
  const answer = async (calls: readonly OpenCall[]): Promise<void> => {
    const parts = await toolTurn(run, ports, calls, children, streak);
    run.messages.push(toolMessage(run, ports, parts));
    // A tool that swallowed its abort signal must not lead to another model call.
    run.signal.throwIfAborted();
  };
  const open = plan.resume?.calls ?? [];
  if (open.length > 0) await answer(open);
  if (next !== null) {
    run.messages.push(next);
    keepMessage(run, []);
  }
  for (let round = run.modelCalls; ; round += 1) {
    const withTools = round < ports.settings.maxIterations;
    const turn = await modelTurn(
      run,
      ports,
      toPrompt(instructions, [...history, ...run.messages], run.attachments),
      withTools,
    );
    run.messages.push(assistantMessage(run, turn, ports.now()));
    if (turn.toolCalls.length === 0) {
      if (turn.finish.finishReason === 'ContentFilter')
        throw new RunFailure(
          'ContentFiltered',
          'content_filtered',
          `Provider "${run.target.provider.name}" filtered the content.`,
        );
      return { output: turn.text, finishReason: withTools ? turn.finish.finishReason : 'Iterations' };
    }
    const calls = openCalls(run, turn.toolCalls);
    keepMessage(run, calls);
    await answer(calls);
  }
};
