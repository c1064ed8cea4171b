import { type Program, type Server, startAcp } from './servers.ts';
import { measureTurns, type Side, type Turns, type TurnsOptions } from './turns.ts';
import { acpCall, acpFolder, createAgents } from './workspace.ts';

/** More than any load uses, so that every run is admitted. */
const plenty = 1_000_000_000_000;

const services: readonly { readonly name: string; readonly rule: object | null; readonly settings?: string }[] = [
  { name: 'no rule', rule: null },
  { name: 'a rule on runs', rule: { maxRuns: 1_000_000_000 } },
  { name: 'a rule on tokens', rule: { maxTokens: plenty } },
  { name: 'a strict rule on tokens', rule: { maxTokens: plenty }, settings: 'Quotas: { Strict: true }' },
];

/** What admission by quota rules costs: services with a rule each, compared with one that has none. */
export const measureQuotaRules = async (
  folder: string,
  program: Program,
  simulator: Server,
  options: TurnsOptions,
): Promise<Turns[]> => {
  const sides: Side[] = [];
  for (const [index, { name, rule, settings }] of services.entries()) {
    const server = await startAcp(
      program,
      acpFolder(folder, `quota-${index}`, simulator, settings === undefined ? {} : { settings }).cwd,
    );
    await createAgents(server);
    if (rule !== null) {
      const response = await fetch(new URL('/api/quotas', server.url), {
        method: 'PUT',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ period: 'Daily', ...rule }),
      });
      if (!response.ok) throw new Error(`The quota rule was refused: ${await response.text()}`);
    }
    sides.push({ name, server, call: acpCall(server, 'sse', false) });
  }
  const turns = await measureTurns(sides, options);
  await Promise.all(sides.map(({ server }) => server.stop()));
  return turns;
};
