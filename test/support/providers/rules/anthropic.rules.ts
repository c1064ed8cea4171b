import type { SimulatedRequest } from '../scenario.ts';

interface Block {
  readonly type: string;
  readonly id?: string;
  readonly tool_use_id?: string;
  readonly text?: string;
  readonly content?: unknown;
  readonly is_error?: boolean;
}

interface Message {
  readonly role: string;
  readonly content: readonly Block[];
}

const blocksOf = (content: unknown): readonly Block[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : (content as readonly Block[]);

/** As the API reads them: messages of one role in a row are one message. */
const merged = (body: SimulatedRequest['body']): Message[] => {
  const list: { role: string; content: Block[] }[] = [];
  for (const { role, content } of (body['messages'] ?? []) as { role: string; content: unknown }[]) {
    const last = list.at(-1);
    if (last?.role === role) last.content.push(...blocksOf(content));
    else list.push({ role, content: [...blocksOf(content)] });
  }
  return list;
};

// The vendor's check knows the white space of Unicode; characters of no width are as little to read.
const isBlank = (text: string): boolean => !/[^\s\p{Cc}\p{Default_Ignorable_Code_Point}]/u.test(text);

const blankText = (where: string, blocks: readonly Block[]): string | null => {
  for (const { type, text } of blocks) {
    if (type !== 'text') continue;
    if (text === undefined || text === '') return `${where}: text content blocks must be non-empty`;
    if (isBlank(text)) return `${where}: text content blocks must contain non-whitespace text`;
  }
  return null;
};

const idsOf = (message: Message | undefined, type: string): string[] =>
  (message?.content ?? []).flatMap((block) => (block.type === type ? [block.id ?? block.tool_use_id ?? ''] : []));

const calls = (messages: readonly Message[]): string | null => {
  const known = new Set<string>();
  for (const [index, message] of messages.entries()) {
    const at = `messages.${index}`;
    const made = idsOf(message, 'tool_use');
    for (const id of made) {
      if (known.has(id)) return 'messages: `tool_use` ids must be unique';
      if (!/^[\w-]+$/.test(id)) return `${at}: tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`;
      known.add(id);
    }
    const next = messages[index + 1];
    const results = (next?.content ?? []).findIndex(({ type }) => type !== 'tool_result');
    const first = next === undefined || results === -1 ? next?.content : next.content.slice(0, results);
    const answered = new Set((first ?? []).map((block) => block.tool_use_id));
    const open = made.filter((id) => !answered.has(id));
    if (open.length > 0)
      return `${at}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(', ')}`;
    const before = new Set(idsOf(messages[index - 1], 'tool_use'));
    const stray = idsOf(message, 'tool_result').find((id) => !before.has(id));
    if (stray !== undefined)
      return `${at}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${stray}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`;
    if (message.content.some(({ type, is_error, content }) => type === 'tool_result' && is_error && !content))
      return `${at}: content cannot be empty if \`is_error\` is true`;
  }
  return null;
};

/** A search without its result continues: in the message that the model is to continue, and in no other. */
const searches = (messages: readonly Message[]): string | null => {
  for (const [index, message] of messages.entries()) {
    const made = idsOf(message, 'server_tool_use');
    const results = idsOf(message, 'web_search_tool_result');
    const isOver = messages.slice(index + 1).some(({ content }) => content.some(({ type }) => type !== 'tool_result'));
    const open = made.find((id) => !results.includes(id));
    const isLast = message.content.at(-1)?.type === 'server_tool_use' || idsOf(message, 'tool_use').length > 0;
    if (open !== undefined && (isOver || !isLast))
      return `messages.${index}: \`web_search\` tool use with id \`${open}\` was found without a corresponding \`web_search_tool_result\` block`;
    if (results.some((id) => !made.includes(id)))
      return `messages.${index}: unexpected \`tool_use_id\` found in \`web_search_tool_result\` blocks`;
  }
  return null;
};

const ending = (messages: readonly Message[]): string | null => {
  for (const [index, { role, content }] of messages.entries())
    if (role === 'assistant' && /thinking$/.test(content.at(-1)?.type ?? ''))
      return `messages.${index}: The final block in an assistant message cannot be \`thinking\`.`;
  const last = messages.at(-1);
  return last?.role === 'assistant' && /\s$/.test(last.content.at(-1)?.text ?? '')
    ? 'messages: final assistant content cannot end with trailing whitespace'
    : null;
};

/** What Anthropic refuses of a conversation; null: it takes it. */
export const anthropicObjection = ({ body }: SimulatedRequest): string | null => {
  const messages = merged(body);
  const [first] = messages;
  if (first === undefined) return 'messages: at least one message is required';
  const foreign = messages.find(({ role }) => role !== 'user' && role !== 'assistant');
  if (foreign !== undefined) return `messages: Unexpected role "${foreign.role}"`;
  if (first.role !== 'user') return 'messages: first message must use the "user" role';
  if (messages.some(({ content }) => content.length === 0)) return 'messages: all messages must have non-empty content';
  return (
    blankText('system', body['system'] === undefined ? [] : blocksOf(body['system'])) ??
    blankText(
      'messages',
      messages.flatMap(({ content }) => content),
    ) ??
    calls(messages) ??
    searches(messages) ??
    ending(messages)
  );
};
