import type { Json } from '../../contract/schema.ts';
import { type RegisteredTool, registeredTool } from './registry.ts';
import { ToolError } from './tool.ts';

/** A model that does not get its tools with every call looks for them with one, and calls what it has found by the other. */
export const findToolName = 'tools_find';
export const callToolName = 'tools_call';

/** What a model is told of a tool. */
interface ToldTool {
  readonly name: string;
  readonly description?: string | undefined;
  readonly inputSchema: unknown;
}

const mostFound = 20;
const usuallyFound = 5;

const findSchema = {
  type: 'object',
  properties: {
    query: { type: 'string', minLength: 1, maxLength: 1000, description: 'What the tool should do, in a few words' },
    limit: {
      type: 'integer',
      minimum: 1,
      maximum: mostFound,
      description: `How many to return; default ${usuallyFound}`,
    },
  },
  required: ['query'],
  additionalProperties: false,
} as const;

const callSchema = {
  type: 'object',
  properties: {
    name: { type: 'string', description: `Name of a tool, as ${findToolName} has returned it` },
    arguments: { type: 'object', description: "The tool's arguments, which fit its inputSchema" },
  },
  required: ['name', 'arguments'],
  additionalProperties: false,
} as const;

const wordsOf = (text: string): readonly string[] =>
  text
    .replaceAll(/(\p{Ll})(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];

// A word of the name says more than one of the description, and that more than one among the arguments.
const weights = [8, 3, 1] as const;
const shortestPart = 4;

const isSame = (word: string, asked: string): boolean =>
  word === asked ||
  (Math.min(word.length, asked.length) >= shortestPart && (word.startsWith(asked) || asked.startsWith(word)));

/** Ranks tools by the words that they share with what is asked for; rare words count more. */
const toolIndex = (tools: readonly ToldTool[]): ((query: string, limit: number) => readonly ToldTool[]) => {
  const entries = tools.map((tool) => ({
    tool,
    fields: [tool.name, tool.description ?? '', JSON.stringify(tool.inputSchema)].map((text) => new Set(wordsOf(text))),
  }));
  const scoreOf = ({ fields }: (typeof entries)[number], asked: string): number =>
    Math.max(
      ...fields.map((words, field) => ([...words].some((word) => isSame(word, asked)) ? (weights[field] ?? 0) : 0)),
    );
  return (query, limit) => {
    const scores = entries.map(() => 0);
    for (const asked of new Set(wordsOf(query))) {
      const hits = entries.map((entry) => scoreOf(entry, asked));
      const having = hits.filter((hit) => hit > 0).length;
      for (const [index, hit] of hits.entries())
        scores[index] = (scores[index] ?? 0) + hit * Math.log(1 + entries.length / Math.max(1, having));
    }
    return entries
      .map(({ tool }, index) => ({ tool, score: scores[index] ?? 0 }))
      .filter(({ score }) => score > 0)
      .sort((a, b) => b.score - a.score || (a.tool.name < b.tool.name ? -1 : 1))
      .slice(0, limit)
      .map(({ tool }) => tool);
  };
};

/** Looks among these tools. Its results have words of remote servers, and guards take them for that. */
export const findTool = (tools: readonly ToldTool[]): RegisteredTool => {
  let find: ReturnType<typeof toolIndex> | null = null;
  return registeredTool(
    {
      name: findToolName,
      description: `Finds tools by what they do. You have ${tools.length} tools that are not listed here: look for one before you say that you cannot do something, and call what you have found with ${callToolName}.`,
      inputSchema: findSchema as unknown as Json,
    },
    {
      kind: 'BuiltIn',
      resultSource: 'RemoteTool',
      async body(args) {
        const { query, limit = usuallyFound } = args as { readonly query: string; readonly limit?: number };
        find ??= toolIndex(tools);
        return { tools: find(query, limit) } as unknown as Json;
      },
    },
  );
};

/** Stands for the tool that a call names, and is only ever executed when that is none. */
export const callTool: RegisteredTool = registeredTool(
  {
    name: callToolName,
    description: `Calls a tool that ${findToolName} has found.`,
    inputSchema: callSchema as unknown as Json,
    async execute() {
      throw new ToolError(`There is no tool of this name. Look for one with ${findToolName}.`);
    },
  },
  { kind: 'BuiltIn' },
);
