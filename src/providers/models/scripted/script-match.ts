import type { ModelCall, ModelJson, ModelPrompt } from '../model-provider.ts';
import type { Script, ScriptCondition, ScriptReply } from './script.ts';
import type { TemplateValues } from './script-template.ts';

export interface ScriptMatch {
  readonly reply: ScriptReply;
  readonly values: TemplateValues;
}

const lastUserText = (prompt: ModelPrompt): string => {
  const message = prompt.findLast((candidate) => candidate.role === 'user');
  const parts = message?.content ?? [];
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
};

type ToolMessage = Extract<ModelPrompt[number], { role: 'tool' }>;
type ToolResult = Extract<ToolMessage['content'][number], { type: 'tool-result' }>;

const lastResultOf = (message: ModelPrompt[number] | undefined): ToolResult | undefined =>
  message?.role === 'tool' ? message.content.findLast((part) => part.type === 'tool-result') : undefined;

const outputValue = (result: ToolResult | undefined): ModelJson | null => {
  if (result === undefined) return null;
  const { output } = result;
  switch (output.type) {
    case 'execution-denied':
      return output.reason ?? '';
    case 'content':
      return output.value.map((part) => (part.type === 'text' ? part.text : '')).join('');
    default:
      return output.value;
  }
};

const groupsOf = (match: RegExpExecArray): Record<string, string> => ({
  ...Object.fromEntries([...match.entries()].map(([index, group]) => [index, group ?? ''])),
  ...match.groups,
});

/** The groups when the message matches, else null. */
const matchMessage = (wanted: ScriptCondition['message'], message: string): Record<string, string> | null => {
  if (wanted instanceof RegExp) {
    const match = wanted.exec(message);
    return match === null ? null : groupsOf(match);
  }
  return wanted === null || message.toLowerCase().includes(wanted.toLowerCase()) ? {} : null;
};

/** The first rule that fits the call. Where tools must not be called, rules that call some do not fit. */
export const matchRule = (script: Script, call: ModelCall): ScriptMatch | null => {
  const message = lastUserText(call.prompt);
  const answered = lastResultOf(call.prompt.at(-1))?.toolName ?? null;
  for (const { when, reply } of script.rules) {
    const fits =
      (when.tool === null || when.tool === answered) &&
      (when.call === null || when.call === call.callNumber) &&
      (when.model === null || when.model === call.model) &&
      (reply.toolCalls.length === 0 || call.toolChoice !== 'none');
    const groups = fits ? matchMessage(when.message, message) : null;
    if (groups !== null) {
      const last = outputValue(lastResultOf(call.prompt.findLast((candidate) => candidate.role === 'tool')));
      return { reply, values: { last, groups } };
    }
  }
  return null;
};
