import { setImmediate as nextTurn } from 'node:timers/promises';
import { isRecord } from '../../contract/record.ts';
import { isNestedTooDeep } from '../../core/documents/json-depth.ts';
import { maxJsonDepth } from '../../core/documents/json-shape.ts';
import { createTurns } from '../../core/event-loop-turns.ts';
import { ResultFiles, type ToolContext, ToolError } from '../../engine/tools/index.ts';
import { visibleText } from '../../providers/mcp/visible-text.ts';

const extensions: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/gif': 'gif',
  'image/webp': 'webp',
  'audio/wav': 'wav',
  'audio/mpeg': 'mp3',
  'application/pdf': 'pdf',
};

const text = (value: unknown): string => (typeof value === 'string' ? visibleText(value) : '');

/** Keeps a file of the result; its line is added to the result by whoever runs the call. Otherwise what is said of it instead. */
const fileText = async (
  part: Readonly<Record<string, unknown>>,
  data: unknown,
  context: ToolContext,
  files: ResultFiles,
): Promise<string | null> => {
  const type = typeof part['mimeType'] === 'string' ? part['mimeType'].toLowerCase() : 'application/octet-stream';
  const left = `[a file of type ${visibleText(type.slice(0, 100))} was left out]`;
  if (typeof data !== 'string') return left;
  // Before it is decoded: those beyond the limit cost nothing.
  if (!files.take()) return null;
  const bytes = Buffer.from(data, 'base64');
  if (bytes.byteLength === 0) return left;
  try {
    await context.saveAttachment(bytes, `result.${extensions[type] ?? 'bin'}`);
    return null;
  } catch (error) {
    // The rules of attachments refuse it: the rest of the result still counts.
    if (error instanceof ToolError) return left;
    throw error;
  }
};

type Part = Readonly<Record<string, unknown>>;

const partText = async (part: Part, context: ToolContext, files: ResultFiles): Promise<string | null> => {
  const { type } = part;
  if (type === 'text') return text(part['text']);
  if (type === 'image' || type === 'audio') return fileText(part, part['data'], context, files);
  if (type === 'resource_link') return `[resource ${text(part['uri'])}: ${text(part['name'])}]`;
  if (type !== 'resource' || !isRecord(part['resource'])) return null;
  const { resource } = part;
  if (typeof resource['text'] === 'string') return text(resource['text']);
  return fileText(resource, resource['blob'], context, files);
};

/** The bytes of its files, as a result has them. */
const fileData = (content: readonly unknown[]): ReadonlySet<unknown> =>
  new Set(
    content.flatMap((part) => {
      if (!isRecord(part)) return [];
      const data = isRecord(part['resource']) ? part['resource']['blob'] : part['data'];
      return typeof data === 'string' && data !== '' ? [data] : [];
    }),
  );

/**
 * As JSON, without the bytes of files that the content has as well: a model would read them as text. It was parsed in this turn of
 * the event loop and is recorded afterwards, each of which may take as long as this does, so that others have turns between.
 */
const structuredText = async (structured: unknown, files: ReadonlySet<unknown>): Promise<string> => {
  await nextTurn();
  const text =
    files.size === 0
      ? JSON.stringify(structured)
      : JSON.stringify(structured, (_, value: unknown) => (files.has(value) ? '[the file of this result]' : value));
  await nextTurn();
  return visibleText(text);
};

/** The result of `tools/call` as a text for the model; files in it become attachments of the run. */
export const resultText = async (result: Readonly<Record<string, unknown>>, context: ToolContext): Promise<string> => {
  const parts: string[] = [];
  const content = Array.isArray(result['content']) ? (result['content'] as readonly unknown[]) : [];
  const files = new ResultFiles();
  const turn = createTurns();
  for (const part of content) {
    if (!isRecord(part)) continue;
    const turned = turn();
    if (turned !== null) await turned;
    const told = await partText(part, context, files);
    if (told !== null) parts.push(told);
  }
  const structured = result['structuredContent'];
  // Servers repeat it as a text for clients that do not know it.
  const isRepeated = structured === undefined || structured === null || parts.some((part) => part !== '');
  if (!isRepeated && isNestedTooDeep(structured))
    throw new ToolError(`The structuredContent of the server is nested deeper than ${maxJsonDepth} levels.`);
  const said = isRepeated ? parts.join('\n') : await structuredText(structured, fileData(content));
  return files.note === null ? said : [said, files.note].filter((part) => part !== '').join('\n');
};
