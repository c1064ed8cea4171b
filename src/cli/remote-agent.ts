import { AcpError } from '../contract/errors.ts';
import { parseForeignJson } from '../core/documents/foreign-json.ts';
import type { ReplyPart, TaskReading } from '../providers/a2a/task-reading.ts';
import type { OutboundHttp } from '../providers/http/outbound.ts';

/** The whole Authorization header; there is no option for it: command lines are public. */
export const authorizationVariable = 'A2A_AUTHORIZATION';

const maxBytes = 16 * 1024 * 1024;
const timeoutMs = 30_000;

/** What the numbers of the protocol mean. What an agent says beside them is not repeated. */
const meanings: Readonly<Record<number, string>> = {
  [-32001]: 'It has no such task',
  [-32002]: 'The task cannot be canceled, as it has ended or is elsewhere',
  [-32004]: 'It does not do that, or not with this task',
  [-32005]: 'It does not take such content',
  [-32009]: 'It does not speak this version',
  [-32602]: 'It does not accept the message as it is',
};
const cardHint = 'The address is that of the card itself, such as https://example.com/.well-known/agent-card.json.';

const answered = (number: number): string => {
  const meaning = meanings[number];
  return meaning === undefined ? `It answered ${number}.` : `${meaning} (${number}).`;
};

interface Remote {
  /** As it was read. */
  readonly document: unknown;
  readonly client: Awaited<ReturnType<typeof clientOf>>;
}

const clientOf = async (document: unknown, cardUrl: URL, authorization: string | null, http: OutboundHttp) => {
  const [{ readAgentCard }, { createA2aClient }] = await Promise.all([
    import('../providers/a2a/agent-card.ts'),
    import('../providers/a2a/a2a-client.ts'),
  ]);
  const card = readAgentCard(document);
  if ('problem' in card)
    throw new AcpError('remote-agent-failed', `What ${cardUrl.origin} answers is no card: ${card.problem}.`);
  if (authorization !== null && card.url.origin !== cardUrl.origin)
    throw new AcpError(
      'remote-agent-failed',
      `The card names ${card.url.origin}, where the credential of ${cardUrl.origin} is not sent.`,
    );
  return createA2aClient({
    ...{ http, card, authorization, maxBytes },
    requestTimeoutMs: timeoutMs,
    requested: () => undefined,
  });
};

const parsed = (text: string, origin: string): unknown => {
  try {
    return parseForeignJson(text);
  } catch (cause) {
    throw new AcpError('remote-agent-failed', `What ${origin} answers is no JSON.`, {
      cause,
      details: { hint: cardHint },
    });
  }
};

const readCard = async (url: URL, authorization: string | null, http: OutboundHttp): Promise<unknown> => {
  const { status, body } = await http.request({
    method: 'GET',
    url,
    headers: { accept: 'application/json', ...(authorization === null ? {} : { authorization }) },
    timeoutMs,
    maxBodyBytes: 262_144,
    readErrorBody: false,
  });
  if (status === 401 || status === 403)
    throw new AcpError(
      'remote-agent-failed',
      authorization === null
        ? `${url.origin} wants a credential: set ${authorizationVariable} to the whole Authorization header.`
        : `${url.origin} does not take the credential of ${authorizationVariable}, which is a whole header, such as "Bearer …" (HTTP ${status}).`,
    );
  if (status !== 200)
    throw new AcpError('remote-agent-failed', `${url.origin} answered with HTTP ${status}.`, {
      details: status === 404 || status === 405 ? { hint: cardHint } : {},
    });
  return parsed(Buffer.from(body).toString('utf8'), url.origin);
};

const urlOf = (text: string): URL => {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new AcpError('validation-failed', `A card has an http or https address, and "${text}" is none.`);
  return url;
};

/** Reads a card and does something with its agent, from this machine and with nothing of a service. */
export const withRemoteAgent = async <T>(
  address: string,
  environment: Readonly<Record<string, string | undefined>>,
  work: (remote: Remote) => Promise<T>,
): Promise<T> => {
  const [{ createOutboundHttp }, { OutboundError }, { failureNumber, McpFailure }] = await Promise.all([
    import('../providers/http/outbound.ts'),
    import('../providers/http/outbound-error.ts'),
    import('../providers/mcp/mcp-failure.ts'),
  ]);
  const url = urlOf(address);
  const authorization = environment[authorizationVariable] || null;
  const http = createOutboundHttp({ allowPrivate: true });
  try {
    const document = await readCard(url, authorization, http);
    return await work({ document, client: await clientOf(document, url, authorization, http) });
  } catch (error) {
    if (error instanceof OutboundError)
      throw new AcpError('cannot-connect', `Nothing of use answers at ${url.origin}.`, {
        cause: error,
        details: { hint: 'Is the agent running, and can this machine reach it?' },
      });
    if (!(error instanceof McpFailure)) throw error;
    const number = failureNumber(error);
    const words = number === null ? error.message : answered(number);
    throw new AcpError('remote-agent-failed', words, { cause: error });
  } finally {
    await http.close();
  }
};

const partText = (part: ReplyPart): string => {
  if (part.kind === 'text') return part.text;
  if (part.kind === 'data') return JSON.stringify(part.data);
  return `[file ${part.url ?? part.name ?? part.mediaType ?? ''}]`;
};

export const answerText = (reading: TaskReading): string => reading.parts().map(partText).join('\n');

/** What is shown of a task. */
export const taskReport = (reading: TaskReading) => ({
  taskId: reading.task?.id ?? null,
  contextId: reading.task?.contextId ?? null,
  state: reading.task?.state ?? 'COMPLETED',
  answer: answerText(reading),
});
