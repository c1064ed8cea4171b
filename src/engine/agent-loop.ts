import type { ActiveRun, FinishReason } from './active-run.ts';
import type { ChildCaller } from './agent-tool.ts';
import { type ChatMessage, type ContentPart, toPrompt } from './chat-message.ts';
import type { EnginePorts } from './engine-ports.ts';
import { isoTime } from './event-pack.ts';
import { type ModelTurn, modelTurn } from './model-turn.ts';
import { RunFailure } from './run-failure.ts';
import { type ErrorStreak, toolTurn } from './tool-turn.ts';

export interface LoopResult {
  readonly output: string;
  readonly finishReason: FinishReason;
}

/** The user's message of this turn: its documents first, apart from the text. */
export const userMessage = (
  run: Pick<ActiveRun['plan'], 'id' | 'message' | 'documents'>,
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

/** The loop: model, tools, model, … until an answer without tool calls, or the iteration cap. */
export const agentLoop = async (run: ActiveRun, ports: EnginePorts, children: ChildCaller): Promise<LoopResult> => {
  const { plan } = run;
  const instructions = plan.agent.instructions(plan.culture, plan.parameters);
  const history = run.session?.history ?? [];
  const streak: ErrorStreak = { count: 0 };
  for (let round = 0; ; round += 1) {
    const withTools = round < ports.settings.maxIterations;
    const turn = await modelTurn(run, ports, toPrompt(instructions, [...history, ...run.messages]), withTools);
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
    const parts = await toolTurn(run, ports, turn.toolCalls, children, streak);
    run.messages.push({
      messageId: ports.newId(),
      role: 'Tool',
      runId: run.id,
      createdAt: isoTime(ports.now()),
      interrupted: false,
      contents: parts,
    });
    // A tool that swallowed its abort signal must not lead to another model call.
    run.signal.throwIfAborted();
  }
};
