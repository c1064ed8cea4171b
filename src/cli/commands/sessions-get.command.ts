import type { Command } from 'commander';
import type { SessionDetailResponse } from '../../features/sessions/sessions.schema.ts';
import { formatTime } from '../../text/format.ts';
import type { Style } from '../../text/style.ts';
import { fitText, safeLine, safeText } from '../../text/text-width.ts';
import { type CommandHost, covers } from '../command-host.ts';
import { renderRecord } from '../output/record.ts';

type Message = NonNullable<SessionDetailResponse['messages']>[number];
type Part = Message['contents'][number];

// What a tool was given or gave is shown as far as it helps to follow the conversation.
const payloadWidth = 160;

const payload = (value: unknown): string =>
  fitText(safeLine(typeof value === 'string' ? value : JSON.stringify(value)), payloadWidth);

const partText = (part: Part, style: Style): string => {
  switch (part.type) {
    case 'Text':
      return safeText(part.text.trimEnd());
    case 'Reasoning':
      return style.dim(safeText(part.text.trimEnd()));
    case 'Document':
      return style.dim(`document ${safeLine(part.name)}`);
    case 'Attachment':
      return style.dim(`attachment ${safeLine(part.fileName)} (${safeLine(part.mediaType)})`);
    case 'ToolCall':
      return `${style.cyan(safeLine(part.toolName))} ${payload(part.arguments)}`;
    case 'ToolResult':
      return part.errorMessage === null
        ? `${style.green(safeLine(part.toolName))} ${payload(part.result ?? '')}`
        : `${style.red(safeLine(part.toolName))} ${payload(part.errorMessage)}`;
    case 'ApprovalRequest':
      return `${style.yellow(`asks to call ${safeLine(part.toolName)}`)} ${payload(part.arguments)}`;
    case 'ApprovalResponse':
      return style.yellow(
        part.approved ? 'approved' : `refused${part.reason === null ? '' : `: ${safeLine(part.reason)}`}`,
      );
  }
};

const messageLines = (message: Message, style: Style): string => {
  const marks = message.interrupted ? `  ${style.yellow('interrupted')}` : '';
  const head = `#${message.sequence} ${style.bold(message.role)}  ${style.dim(formatTime(message.createdAt))}${marks}`;
  const parts = message.contents.flatMap((part) => partText(part, style).split('\n'));
  return [head, ...parts.map((line) => `  ${line}`.trimEnd())].map((line) => `${line}\n`).join('');
};

/** The session as a record, then its messages as a conversation; `#` is the sequence that a branch asks for. */
const renderSession = (session: SessionDetailResponse, style: Style): string => {
  const { messages, state: _opaque, ...record } = session;
  return [renderRecord(record, style), ...(messages ?? []).map((message) => messageLines(message, style))].join('\n');
};

/** `acp sessions get`: a session with its messages. */
export const registerSessionsGet = (sessions: Command, host: CommandHost): void => {
  const command = sessions.command('get').description('show a session with its messages').argument('<session-id>');
  covers(command, 'sessions.get').action(
    host.act(async ({ print, connected }, { args }) => {
      const [sessionId] = args as [string];
      const { body } = await connected(({ client }) => client.sessions.get({ params: { sessionId } }));
      await print(body, ({ style }) => renderSession(body, style));
    }),
  );
};
