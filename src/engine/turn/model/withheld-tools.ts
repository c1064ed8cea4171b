import { isRecord } from '../../../contract/record.ts';
import { parsedJson } from '../../../core/documents/json-depth.ts';
import type { ModelPrompt, ModelToolCall } from '../../../providers/models/model-provider.ts';
import type { ActiveRun } from '../../active-run.ts';
import type { CompiledAgent } from '../../compiled-agent.ts';
import { textTokens } from '../../context/index.ts';
import { shownCall } from '../../record/index.ts';
import { callToolName, findToolName } from '../../tools/index.ts';

type Agent = Pick<CompiledAgent, 'tools' | 'modelTools' | 'withheldTools'>;

/** The call that a model means: from here on nothing knows that it was made by way of another tool. */
export const meantCall = (agent: Agent, call: ModelToolCall): ModelToolCall => {
  if (agent.withheldTools === null || call.toolName !== callToolName) return call;
  const input = parsedJson(call.input);
  if (!isRecord(input)) return call;
  const { name: toolName, arguments: args = {} } = input;
  // What is no tool stays what was called, which answers that there is none.
  if (typeof toolName !== 'string' || toolName === callToolName || !agent.tools.has(toolName)) return call;
  return { ...call, toolName, input: typeof args === 'string' ? args : JSON.stringify(args) };
};

/** A prompt in which calls of tools that are not declared stand as the model has made them. */
export const promptAsMade = ({ withheldTools }: Agent, prompt: ModelPrompt): ModelPrompt => {
  if (withheldTools === null) return prompt;
  const names = new Set(withheldTools.map(({ name }) => name));
  return prompt.map((message): ModelPrompt[number] => {
    if (message.role === 'assistant')
      return {
        ...message,
        content: message.content.map((part) =>
          part.type === 'tool-call' && names.has(part.toolName)
            ? shownCall(part, {
                ...part,
                toolName: callToolName,
                input: { name: part.toolName, arguments: part.input },
              })
            : part,
        ),
      };
    if (message.role !== 'tool') return message;
    return {
      ...message,
      content: message.content.map((part) =>
        part.type === 'tool-result' && names.has(part.toolName) ? { ...part, toolName: callToolName } : part,
      ),
    };
  });
};

const saved = new WeakMap<readonly unknown[], number>();

/** Tells the log how many tools the model has to look for, and about how many tokens each of its calls is shorter. */
export const announceWithheld = (run: Pick<ActiveRun, 'log'>, { withheldTools, modelTools }: Agent): void => {
  if (withheldTools === null) return;
  const savedTokensPerCall = saved.getOrInsertComputed(withheldTools, () => {
    const looking = modelTools.filter(({ name }) => name === callToolName || name === findToolName);
    return textTokens(JSON.stringify(withheldTools)) - textTokens(JSON.stringify(looking));
  });
  run.log.append('custom', {
    customType: 'acp.tool-discovery',
    payload: { tools: withheldTools.length, savedTokensPerCall },
  });
};
