import { peakResidentBytes, residentBytes } from './process-usage.ts';
import { type Program, type Server, startAcp } from './servers.ts';
import { measureTurns, type Turns, type TurnsOptions } from './turns.ts';
import { acpCall, acpFolder, createAgents } from './workspace.ts';

/** One kind of run on both builds, and what they need of memory after all of them. */
export interface Against {
  readonly lines: readonly { readonly name: string; readonly turns: readonly Turns[] }[];
  readonly memory: readonly { readonly name: string; readonly afterBytes: number; readonly peakBytes: number }[];
}

const kinds = [
  { name: 'SSE', answer: 'sse', tools: false },
  { name: 'JSON', answer: 'json', tools: false },
  { name: 'SSE, a tool call', answer: 'sse', tools: true },
  { name: 'JSON, a tool call', answer: 'json', tools: true },
] as const;

/** Compares two builds of `acp` in turns: the first is what the second is compared with. */
export const measureAgainst = async (
  folder: string,
  simulator: Server,
  programs: Readonly<Record<string, Program>>,
  options: TurnsOptions,
  note: (text: string) => void,
): Promise<Against> => {
  const servers: { name: string; server: Server }[] = [];
  for (const [name, program] of Object.entries(programs)) {
    const server = await startAcp(program, acpFolder(folder, name, simulator).cwd);
    await createAgents(server);
    servers.push({ name, server });
  }
  const lines: Against['lines'][number][] = [];
  for (const { name, answer, tools } of kinds) {
    note(`in turns: ${name}`);
    const sides = servers.map(({ name, server }) => ({ name, server, call: acpCall(server, answer, tools) }));
    lines.push({ name, turns: await measureTurns(sides, options) });
  }
  const memory = servers.map(({ name, server: { pid } }) => ({
    name,
    afterBytes: residentBytes(pid),
    peakBytes: peakResidentBytes(pid),
  }));
  await Promise.all(servers.map(({ server }) => server.stop()));
  return { lines, memory };
};
