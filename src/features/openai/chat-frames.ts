import type { Frame } from '../../contract/operation.ts';
import type { ChatToolCall } from './chat.schema.ts';
import { type ChatHead, chatFinish, chatUsage, toolCall } from './chat-answer.ts';
import { canceledError, type FrameTranslator, failureOf, membersOf, type RunEventMembers } from './run-frames.ts';

interface Delta {
  readonly role?: 'assistant';
  readonly content?: string;
  readonly tool_calls?: readonly (ChatToolCall & { readonly index: number })[];
}

export interface ChatFrameOptions {
  readonly includeUsage: boolean;
  /** True: only the accepted answer is sent, since an answer in a format may be asked for again. */
  readonly holdsText: boolean;
}

/** Between two messages of one answer, such as what a model says before it calls a tool. */
const messageBreak = '\n\n';

/** A run's events as chunks of a chat completion. */
export const chatFrames = (head: ChatHead, { includeUsage, holdsText }: ChatFrameOptions): FrameTranslator => {
  const common = `{"id":${JSON.stringify(head.id)},"object":"chat.completion.chunk","created":${head.created},"model":${JSON.stringify(head.model)},"choices":`;
  const usageOfOthers = includeUsage ? ',"usage":null}' : '}';
  let isFromCache = false;
  let sent = '';
  let messageId = '';
  let hasText = false;
  let calls = 0;

  const data = (text: string): Frame => ({ event: '', data: text });
  const chunk = (delta: Delta, finish: string | null = null): Frame =>
    data(
      `${common}[{"index":0,"delta":${JSON.stringify(delta)},"logprobs":null,"finish_reason":${JSON.stringify(finish)}}]${finish !== null && isFromCache ? ',"from_cache":true' : ''}${usageOfOthers}`,
    );
  const error = (told: object): Frame[] => [data(JSON.stringify({ error: told }))];

  const say = (id: string, text: string): readonly Frame[] => {
    if (text === '') return [];
    const isNext = id !== messageId;
    const content = isNext && hasText ? messageBreak + text : text;
    sent = isNext ? text : sent + text;
    messageId = id;
    hasText = true;
    return [chunk({ content })];
  };

  const end = (event: Pick<RunEventMembers, 'usage'>, finish: string): Frame[] => [
    chunk({}, finish),
    ...(includeUsage ? [data(`${common}[],"usage":${JSON.stringify(chatUsage(event.usage))}}`)] : []),
    data('[DONE]'),
  ];

  /** What was not sent of a message in parts, as where guards have seen the whole of it first. */
  const rest = ({ messageId: id, text }: RunEventMembers): readonly Frame[] => {
    const before = id === messageId ? sent : '';
    return text?.startsWith(before) === true ? say(id, text.slice(before.length)) : [];
  };

  return {
    frames(frame) {
      switch (frame.event) {
        case 'run.started':
          return [chunk({ role: 'assistant', content: '' })];
        case 'message.delta': {
          if (holdsText) return [];
          const { messageId: id, text } = membersOf(frame);
          return say(id, text ?? '');
        }
        case 'message.completed': {
          const event = membersOf(frame);
          isFromCache = event.fromCache === true;
          return holdsText ? [] : rest(event);
        }
        case 'client-tool.requested': {
          const { callId, toolName, arguments: args } = membersOf(frame);
          calls += 1;
          return [chunk({ tool_calls: [{ index: calls - 1, ...toolCall(callId, toolName, args) }] })];
        }
        case 'run.completed': {
          const event = membersOf(frame);
          const held = holdsText ? say('', event.output ?? '') : [];
          return [...held, ...end(event, chatFinish(event.finishReason))];
        }
        case 'run.failed': {
          const event = membersOf(frame);
          return event.error.class === 'ContentFiltered' ? end(event, 'content_filter') : error(failureOf(event));
        }
        case 'run.canceled':
          return error(canceledError());
        default:
          return [];
      }
    },
  };
};
