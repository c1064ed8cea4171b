import type { Json } from '../../contract/schema.ts';
import {
  cutText,
  type RegisteredTool,
  registeredTool,
  type ToolDefinition,
  ToolError,
} from '../../engine/tools/index.ts';
import type { MemoryDeps } from './memory.store.ts';

const maxFileBytes = 1_048_576;
const maxTotalBytes = 10_485_760;

const filePath = /^[A-Za-z0-9._/-]{1,256}$/;

/** What is wrong with the path of an agent's file; null when it is one. */
const filePathMistake = (path: string): string | null => {
  if (!filePath.test(path)) return 'path must be 1 to 256 of A-Z a-z 0-9 . _ - and / between its parts';
  const parts = path.split('/');
  return parts.some((part) => part === '' || part === '.' || part === '..')
    ? 'path must not have an empty part, . or ..'
    : null;
};

const defaultLines = 2000;
const maxMatches = 50;
const longestLine = 300;

const path = { type: 'string', description: 'Such as notes/plan.md: letters, digits, . _ - and / between the parts' };
const object = (properties: Readonly<Record<string, Json>>, required: readonly string[]): Json => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});

const builtIn = (definition: ToolDefinition): RegisteredTool =>
  registeredTool(definition, { kind: 'BuiltIn', storesArguments: true });

/** For tools with the argument `path`. */
const checkPath = (args: Json): string[] => {
  const mistake = filePathMistake((args as { readonly path: string }).path);
  return mistake === null ? [] : [mistake];
};

const missing = (name: string): ToolError => new ToolError(`There is no file ${JSON.stringify(name)}.`);

const checkRoom = (content: string) => {
  const size = Buffer.byteLength(content);
  if (size > maxFileBytes) throw new ToolError(`The file has ${size} bytes; a file may have ${maxFileBytes}.`);
  return (otherBytes: number): void => {
    if (otherBytes + size > maxTotalBytes)
      throw new ToolError(`All files together may have ${maxTotalBytes} bytes; ${otherBytes} are in use.`);
  };
};

export const fileTools = ({ store, now }: MemoryDeps): readonly RegisteredTool[] => [
  builtIn({
    name: 'file_list',
    description: 'Lists your files with their sizes, by path.',
    inputSchema: object({}, []),
    effect: 'Read',
    async execute(_args, owner) {
      const files = await store.files(owner);
      return { files: files.map(({ path: name, sizeBytes }) => ({ path: name, sizeBytes })) };
    },
  }),
  builtIn({
    name: 'file_read',
    description: 'Returns the text of one of your files, or some lines of it.',
    inputSchema: object(
      {
        path,
        firstLine: { type: 'integer', minimum: 1, description: 'Default 1' },
        maxLines: { type: 'integer', minimum: 1, description: `Default ${defaultLines}` },
      },
      ['path'],
    ),
    effect: 'Read',
    validate: checkPath,
    async execute(args, owner) {
      const asked = args as { readonly path: string; readonly firstLine?: number; readonly maxLines?: number };
      const content = await store.file(owner, asked.path);
      if (content === null) throw missing(asked.path);
      const lines = content.split('\n');
      const first = (asked.firstLine ?? 1) - 1;
      const shown = lines.slice(first, first + (asked.maxLines ?? defaultLines));
      if (shown.length === lines.length) return content;
      return `${shown.join('\n')}\n[Lines ${first + 1} to ${first + shown.length} of ${lines.length}]`;
    },
  }),
  builtIn({
    name: 'file_write',
    description: 'Writes one of your files as a whole; a file of this path is replaced.',
    inputSchema: object({ path, content: { type: 'string' } }, ['path', 'content']),
    effect: 'Write',
    validate: checkPath,
    async execute(args, owner) {
      const file = args as { readonly path: string; readonly content: string };
      const content = file.content.toWellFormed();
      await store.saveFile(owner, file.path, content, checkRoom(content), now());
      return { path: file.path, sizeBytes: Buffer.byteLength(content) };
    },
  }),
  builtIn({
    name: 'file_delete',
    description: 'Deletes one of your files.',
    inputSchema: object({ path }, ['path']),
    effect: 'Write',
    validate: checkPath,
    async execute(args, owner) {
      const file = args as { readonly path: string };
      if (!(await store.removeFile(owner, file.path))) throw missing(file.path);
      return { deleted: file.path };
    },
  }),
];

/** Lines that contain the text, in all files, case aside. */
export const searchTools = ({ store }: MemoryDeps): readonly RegisteredTool[] => [
  builtIn({
    name: 'file_search',
    description: `Finds lines of your files that contain a text, case aside; at most ${maxMatches}.`,
    inputSchema: object({ text: { type: 'string', minLength: 1, maxLength: 256 } }, ['text']),
    effect: 'Read',
    async execute(args, owner) {
      const wanted = (args as { readonly text: string }).text.toLowerCase();
      const matches: { path: string; line: number; text: string }[] = [];
      // File by file, so that a search of 10 MiB holds one of them at a time and lets others run in between.
      for (const file of await store.files(owner)) {
        const lines = ((await store.file(owner, file.path)) ?? '').split('\n');
        for (const [index, line] of lines.entries())
          if (line.toLowerCase().includes(wanted)) {
            if (matches.length === maxMatches) return { matches, more: true };
            matches.push({ path: file.path, line: index + 1, text: cutText(line.trim(), longestLine) });
          }
      }
      return { matches, more: false };
    },
  }),
];
