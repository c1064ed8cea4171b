import type { ClientToolCall, ToolApprovalDecision } from '../../contract/tool-approval.ts';
import { askKey, askLine, type Left } from '../output/prompt.ts';
import type { Terminal } from '../output/terminal.ts';
import { waitingCallText } from '../output/waiting-call.ts';
import { askQuestion } from './question-prompt.ts';
import type { RunAnswers } from './run-answers.ts';
import type { RunPause } from './run-pause.ts';

const place = (index: number, total: number): string => (total === 1 ? '' : ` (${index + 1} of ${total})`);

const left = (exitCode: number | null = null): Left => ({ left: true, exitCode });

const decisionHelp = 'y yes · n no · a always · A always with these arguments · q leave it waiting';
const onceHelp = 'y yes · n no · q leave it waiting';

/** A rule is kept for `a` and `A`: for every call of the tool by this agent, or for these arguments. */
const askDecision = async (requestId: string, canRemember: boolean): Promise<ToolApprovalDecision | Left> => {
  const key = canRemember
    ? await askKey(`${decisionHelp}\nApprove? `, ['y', 'n', 'a', 'A', 'q'])
    : await askKey(`${onceHelp}\nApprove? `, ['y', 'n', 'q']);
  switch (key) {
    case 'y':
      return { requestId, approved: true };
    case 'a':
      return { requestId, approved: true, remember: true };
    case 'A':
      return { requestId, approved: true, remember: true, rememberArgumentsOnly: true };
    case 'n': {
      const reason = await askLine('Reason for the model (Enter: none): ');
      if (typeof reason !== 'string') return reason;
      return { requestId, approved: false, ...(reason === '' ? {} : { reason }) };
    }
    case 'q':
      return left();
    default:
      return key;
  }
};

const askResult = async (
  terminal: Terminal,
  { callId, elicitation }: ClientToolCall,
): Promise<NonNullable<RunAnswers['toolResults']>[number] | Left> => {
  if (elicitation !== undefined) {
    const result = await askQuestion(terminal, elicitation);
    return typeof result === 'string' ? { callId, result } : result;
  }
  const key = await askKey('r result · e error · q leave it waiting\nAnswer with? ', ['r', 'e', 'q']);
  if (key === 'q') return left();
  if (typeof key !== 'string') return key;
  const text = await askLine(key === 'r' ? 'Result: ' : 'Error: ');
  if (typeof text !== 'string') return text;
  return key === 'r' ? { callId, result: text } : { callId, errorMessage: text };
};

/** Answers that were refused for what some results say: those are asked for once more. */
export interface RefusedAnswers {
  readonly results: NonNullable<RunAnswers['toolResults']>;
  readonly wrong: ReadonlySet<number>;
}

/**
 * Shows every call of a paused run and asks for an answer to it; one that is left leaves the whole run waiting. After a
 * refusal only what was refused is shown.
 */
export const askAnswers = async (
  terminal: Terminal,
  agentName: string,
  { approvals, clientToolCalls }: RunPause,
  canRemember: boolean,
  refused: RefusedAnswers | null = null,
): Promise<RunAnswers | Left> => {
  const { style, width } = terminal;
  const decisions: ToolApprovalDecision[] = [];
  for (const [index, call] of approvals.entries()) {
    const title = `${style.yellow(`${agentName} wants to call`)}${place(index, approvals.length)}`;
    await terminal.write(`\n${waitingCallText(title, call, width, style)}`);
    const decision = await askDecision(call.requestId, canRemember);
    if ('left' in decision) return decision;
    decisions.push(decision);
  }
  if (decisions.length > 0) return { approvals: decisions };
  const toolResults: NonNullable<RunAnswers['toolResults']> = [];
  for (const [index, call] of clientToolCalls.entries()) {
    const kept = refused?.wrong.has(index) === false ? refused.results[index] : undefined;
    if (kept !== undefined) {
      toolResults.push(kept);
      continue;
    }
    const title = `${style.yellow(`${agentName} waits for the result of`)}${place(index, clientToolCalls.length)}`;
    await terminal.write(`\n${waitingCallText(title, call, width, style, true)}`);
    const result = await askResult(terminal, call);
    if ('left' in result) return result;
    toolResults.push(result);
  }
  return { toolResults };
};
