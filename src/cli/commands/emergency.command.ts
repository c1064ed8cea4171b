import type { Command } from 'commander';
import type { Client } from '../../client/client.ts';
import { AcpError } from '../../contract/errors.ts';
import { type CommandHost, covers, type Invocation } from '../command-host.ts';
import type { Session } from '../session.ts';

interface TargetOptions {
  readonly all?: boolean;
  readonly tenant?: string | true;
  readonly agent?: string;
  readonly reason?: string;
}

type Target = Parameters<Client['emergency']['resume']>[0]['body'];

/** One of three widths; an agent may be named together with its tenant. */
const targetOf = ({ all, tenant, agent }: TargetOptions): Target => {
  const tenantId = typeof tenant === 'string' ? tenant : null;
  if (all === true) {
    if (tenant !== undefined || agent !== undefined)
      throw new AcpError('validation-failed', '--all stands for itself: no --tenant or --agent beside it.');
    return { scope: 'All' };
  }
  if (agent !== undefined) return { scope: 'Agent', agentName: agent, tenantId };
  if (tenant !== undefined) return { scope: 'Tenant', tenantId };
  throw new AcpError('validation-failed', 'Name what is meant: --agent <name>, --tenant [slug] or --all.');
};

const widthOf = ({ scope, tenantId, agentName }: Target): string => {
  if (scope === 'All') return 'every agent of every tenant';
  const of = tenantId === null || tenantId === undefined ? '' : ` of tenant ${tenantId}`;
  return scope === 'Agent' ? `agent ${agentName ?? ''}${of}` : `every agent${of}`;
};

const count = (number: number, what: string): string => `${number} ${what}${number === 1 ? '' : 's'}`;

/** A name that is mistyped stops nobody, which must not look like success in an emergency. */
const isUnknownAgent = async (client: Client, { scope, tenantId, agentName }: Target): Promise<boolean> => {
  if (scope !== 'Agent' || typeof agentName !== 'string' || typeof tenantId === 'string') return false;
  return client.agents.get({ params: { name: agentName } }).then(
    () => false,
    (error: unknown) => error instanceof AcpError && error.code === 'agent-not-found',
  );
};

const stop = async ({ terminal, globals, print, connected }: Session, { options }: Invocation): Promise<void> => {
  const { reason } = options as TargetOptions;
  const target = targetOf(options as TargetOptions);
  const body = { ...target, ...(reason === undefined ? {} : { reason }) };
  await connected(async ({ client }) => {
    const { body: result } = await client.emergency.stop({ body });
    if (globals.json) return print(result);
    terminal.note(
      `Stopped ${widthOf(target)}: ${count(result.runs.length, 'run')} canceled, ${count(result.heldCount, 'queued run')} held.`,
    );
    if (await isUnknownAgent(client, target))
      terminal.note(
        `There is no agent "${target.agentName ?? ''}" now; one that gets this name will not run. Check the name.`,
      );
    const rows = result.runs.flatMap(({ runId, agentName, ended, effects }) => {
      const row = { runId, agentName, run: ended ? 'canceled' : 'still ending' };
      return effects.length === 0
        ? [{ ...row, tool: '-', effect: '-', state: '-' }]
        : effects.map(({ toolName, effect, state }) => ({ ...row, tool: toolName, effect, state }));
    });
    if (rows.length > 0) await print(rows);
    terminal.note('Undo it with `acp resume` and the same options; `acp emergency status` tells what is stopped.');
  });
};

const resume = async ({ terminal, globals, print, connected }: Session, { options }: Invocation): Promise<void> => {
  const target = targetOf(options as TargetOptions);
  await connected(async ({ client }) => {
    const { body: result } = await client.emergency.resume({ body: target });
    if (globals.json) return print(result);
    terminal.note(`Resumed ${widthOf(target)}.`);
    for (const { scope, tenantId, agentName } of result.inForce)
      terminal.note(`Still stopped: ${widthOf({ scope, tenantId, agentName })}.`);
  });
};

const withTarget = (command: Command): Command =>
  command
    .option('--agent <name>', 'one agent')
    .option('--tenant [slug]', 'every agent of a tenant, or the tenant of the agent; default: your own')
    .option('--all', 'every agent of every tenant; for callers in the default tenant');

/** `acp stop` and `acp resume`: the kill switch. */
export const registerEmergency = ({ program, act }: CommandHost): void => {
  covers(
    withTarget(
      program.command('stop').description('stop agents at once: cancel runs, hold queued runs, reject new runs'),
    ).option('--reason <text>', 'reason to store with the stop and in the audit trail'),
    'emergency.stop',
  ).action(act(stop));
  covers(
    withTarget(program.command('resume').description('lift the stop with the same options')),
    'emergency.resume',
  ).action(act(resume));
};
