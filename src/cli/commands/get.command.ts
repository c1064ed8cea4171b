import { AcpError } from '../../contract/errors.ts';
import { type CommandHost, covers, type Invocation } from '../command-host.ts';
import type { Session } from '../session.ts';

const formats = ['yaml', 'json'];

const get = async (session: Session, { args, options }: Invocation): Promise<void> => {
  const { terminal, globals, print, connected } = session;
  const [word, name = null] = args as [string, string | undefined];
  const format = String(options['output']);
  if (!formats.includes(format))
    throw new AcpError('validation-failed', `--output must be one of ${formats.join(', ')}, not "${format}".`);
  const [{ namedKind }, { declarationOf, declarationsYaml }] = await Promise.all([
    import('../declarations/declaration-kinds.ts'),
    import('../declarations/declaration-yaml.ts'),
  ]);
  const kind = namedKind(word);
  const stored = await connected(({ client }) => kind.list(client, name));
  const asked = stored.filter((one) => name === null || kind.nameOf(one) === name);
  if (name !== null && asked.length === 0) throw new AcpError('not-found', `There is no ${kind.kind} "${name}".`);
  const declarations = asked.map((one) => declarationOf(kind, one));
  if (globals.json || format === 'json') {
    if (name === null) return terminal.writeJson(`${JSON.stringify(declarations, null, 2)}\n`);
    return terminal.writeJson(`${JSON.stringify(declarations[0], null, 2)}\n`);
  }
  if (declarations.length === 0) return print([]);
  await terminal.write(declarationsYaml(declarations, terminal.interactive));
};

/** `acp get`: what is stored, as declarations that `acp apply` takes again. */
export const registerGet = (host: CommandHost): void => {
  const command = host.program
    .command('get')
    .description('print stored objects as declarations that `apply` accepts')
    .argument(
      '<kind>',
      'Agent, Skill, Schedule, Webhook, Trigger, McpServer, QuotaRule, ApprovalRule, RetentionPolicy or EgressPolicy, in any case and in the plural, too',
    )
    .argument('[name]', 'name of one object; default: all')
    .option('-o, --output <format>', 'yaml or json', 'yaml');
  covers(
    command,
    'agents.list',
    'agents.get',
    'skills.list',
    'schedules.list',
    'schedules.get',
    'webhooks.list',
    'triggers.list',
    'mcpServers.list',
    'quotas.list',
    'approvalRules.list',
    'retention.list',
    'egressPolicies.get',
    'tenants.current',
    'tenants.list',
  ).action(host.act(get));
};
