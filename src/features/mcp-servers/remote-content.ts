import { AcpError } from '../../contract/errors.ts';
import { isRecord } from '../../contract/record.ts';
import type { McpServerRow } from '../../db/tables/mcp.ts';
import { wholeList } from '../../providers/mcp/lists.ts';
import { failureType, McpFailure } from '../../providers/mcp/mcp-failure.ts';
import type { McpClient, McpRequestOptions } from '../../providers/mcp/mcp-target.ts';
import { visibleText } from '../../providers/mcp/visible-text.ts';
import { type Connections, settingsOf } from './connections.ts';
import { createKeptLists } from './kept-lists.ts';
import type { McpPromptSummary, McpResourceContent, McpResourceSummary } from './mcp-servers.schema.ts';
import type { Asker, McpTelemetry } from './mcp-telemetry.ts';

export interface RemoteContentDeps {
  readonly connections: Pick<Connections, 'to' | 'lacking' | 'credential'>;
  readonly telemetry: McpTelemetry;
  readonly timeoutMs: number;
  readonly maxResourceBytes: number;
  readonly now: () => number;
}

type Limits = Pick<McpRequestOptions, 'timeoutMs' | 'signal' | 'trace'>;

const mostListed = 1000;

const textOrNull = (value: unknown): string | null => (typeof value === 'string' ? visibleText(value) : null);

const promptOf = (entry: unknown): McpPromptSummary[] => {
  if (!isRecord(entry) || typeof entry['name'] !== 'string') return [];
  const listed = Array.isArray(entry['arguments']) ? (entry['arguments'] as readonly unknown[]) : [];
  return [
    {
      name: entry['name'],
      title: textOrNull(entry['title']),
      description: textOrNull(entry['description']),
      arguments: listed.flatMap((argument) =>
        isRecord(argument) && typeof argument['name'] === 'string'
          ? [
              {
                name: argument['name'],
                description: textOrNull(argument['description']),
                required: argument['required'] === true,
              },
            ]
          : [],
      ),
    },
  ];
};

const resourceOf = (entry: unknown): McpResourceSummary[] => {
  if (!isRecord(entry) || typeof entry['uri'] !== 'string') return [];
  const { size } = entry;
  return [
    {
      uri: entry['uri'],
      name: textOrNull(entry['name']) ?? '',
      title: textOrNull(entry['title']),
      mimeType: textOrNull(entry['mimeType']),
      description: textOrNull(entry['description']),
      size: Number.isSafeInteger(size) && Number(size) >= 0 ? Number(size) : null,
    },
  ];
};

const messageText = (message: unknown): string[] => {
  if (!isRecord(message)) return [];
  const parts: readonly unknown[] = Array.isArray(message['content']) ? message['content'] : [message['content']];
  return parts.flatMap((part) =>
    isRecord(part) && part['type'] === 'text' && typeof part['text'] === 'string' ? [visibleText(part['text'])] : [],
  );
};

/** At most so many bytes of UTF-8, never half a character. */
export const cutBytes = (text: string, most: number): string => {
  const bytes = Buffer.from(text, 'utf8');
  if (bytes.byteLength <= most) return text;
  return new TextDecoder('utf-8').decode(bytes.subarray(0, most), { stream: true });
};

/** A resource as it was read. `text` is whole; null: it is binary. */
export interface ReadContent {
  readonly mimeType: string | null;
  readonly text: string | null;
  readonly byteSize: number;
}

const partsOf = (contents: unknown): readonly Readonly<Record<string, unknown>>[] =>
  Array.isArray(contents) ? contents.filter(isRecord) : [];

const readParts = (contents: unknown): ReadContent => {
  const parts = partsOf(contents);
  const texts = parts.flatMap(({ text }) => (typeof text === 'string' ? [text] : []));
  const [first] = parts;
  if (first === undefined) throw new McpFailure('broken');
  const mimeType = textOrNull(first['mimeType']);
  if (texts.length > 0) {
    const text = texts.join('\n');
    return { mimeType, text: visibleText(text), byteSize: Buffer.byteLength(text) };
  }
  const blob = first['blob'];
  if (typeof blob !== 'string') throw new McpFailure('broken');
  return { mimeType, text: null, byteSize: Buffer.from(blob, 'base64').byteLength };
};

/** What servers have beside tools. Throws AcpError for a server that fails. */
export const createRemoteContent = ({ connections, telemetry, timeoutMs, ...deps }: RemoteContentDeps) => {
  const { maxResourceBytes } = deps;
  const kept = createKeptLists(deps.now);
  /** One exchange with a server, counted; its failure as callers are told of it. */
  const asked = async <T>(
    row: McpServerRow,
    { method, uri = null }: { readonly method: string; readonly uri?: string | null },
    { signal, openSpan }: Asker,
    work: (client: McpClient, limits: Limits) => Promise<T>,
  ): Promise<T> => {
    const server = { name: row.name, endpoint: settingsOf(row).endpoint };
    const exchange = telemetry.exchange(server, method, openSpan, uri === null ? null : { uri });
    let errorType: string | null = null;
    try {
      // What is kept of its last answers is not for somebody whom it would refuse now.
      if (connections.lacking(row) === 'AuthorizationRequired') throw new McpFailure('unauthorized');
      const client = connections.to(row);
      exchange.speaks((await client.session({ timeoutMs, signal })).version);
      return await work(client, { timeoutMs, signal, trace: exchange.trace });
    } catch (error) {
      errorType = error instanceof McpFailure ? failureType(error) : null;
      if (!(error instanceof McpFailure)) throw error;
      if (error.kind === 'unauthorized' && settingsOf(row).oauthEnabled)
        throw new AcpError('mcp-authorization-required', `Somebody has to authorize this service at "${row.name}".`, {
          cause: error,
        });
      throw new AcpError('mcp-server-failed', `The MCP server "${row.name}" failed.`, { cause: error });
    } finally {
      exchange.end(errorType);
    }
  };

  const list = (row: McpServerRow, kind: 'prompts' | 'resources', asker: Asker): Promise<readonly unknown[]> =>
    asked(row, { method: `${kind}/list` }, asker, async (client, limits) => {
      const { capabilities } = await client.session(limits);
      if (!Object.hasOwn(capabilities, kind)) return [];
      return kept.list(row, kind, await connections.credential(row), () =>
        wholeList(client, kind, { ...limits, maxEntries: mostListed }),
      );
    });
  const resources = async (row: McpServerRow, asker: Asker): Promise<readonly McpResourceSummary[]> =>
    (await list(row, 'resources', asker)).flatMap(resourceOf);
  const prompts = async (row: McpServerRow, asker: Asker): Promise<readonly McpPromptSummary[]> =>
    (await list(row, 'prompts', asker)).flatMap(promptOf);

  const readListed = (row: McpServerRow, uri: string, asker: Asker): Promise<ReadContent> =>
    asked(row, { method: 'resources/read', uri }, asker, async (client, limits) => {
      const answer = await client.request('resources/read', { uri }, { ...limits, name: uri });
      return readParts(answer['contents']);
    });

  return {
    prompts,
    resources,
    /** One that is in the list, which the caller has looked at. */
    readListed,
    /** As callers get it: cut. */
    async resource(row: McpServerRow, uri: string, asker: Asker): Promise<McpResourceContent> {
      if (!(await resources(row, asker)).some((resource) => resource.uri === uri))
        throw new AcpError('resource-not-listed', `The MCP server "${row.name}" lists no such resource.`);
      const { mimeType, text, byteSize } = await readListed(row, uri, asker);
      const kept = text === null ? null : cutBytes(text, maxResourceBytes);
      return { uri, mimeType, text: kept, isBinary: text === null, byteSize, truncated: kept !== text };
    },
    promptText: (
      row: McpServerRow,
      name: string,
      args: Readonly<Record<string, string>>,
      asker: Asker,
    ): Promise<string> =>
      asked(row, { method: 'prompts/get' }, asker, async (client, limits) => {
        const answer = await client.request('prompts/get', { name, arguments: args }, { ...limits, name });
        const { messages } = answer;
        if (!Array.isArray(messages)) throw new McpFailure('broken');
        return messages.flatMap(messageText).join('\n\n');
      }),
  };
};

export type RemoteContent = ReturnType<typeof createRemoteContent>;
