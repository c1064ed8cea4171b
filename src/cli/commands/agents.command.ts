import { AcpError } from '../../contract/errors.ts';
import { padText, safeLine, textWidth } from '../../text/text-width.ts';
import { type CommandHost, collect, commandGroup, covers, type Invocation } from '../command-host.ts';
import { agentDocuments } from '../definitions/agent-documents.ts';
import { type CheckedDefinition, checkDefinitions } from '../definitions/check-definitions.ts';
import { readDefinitions } from '../definitions/definition-sources.ts';
import { findingLine, placeOf } from '../output/finding-line.ts';
import { unifiedDiff } from '../output/unified-diff.ts';
import type { Session } from '../session.ts';
import { registerAgentsApply } from './agents-apply.command.ts';

const version = (text: string, name: string): number => {
  if (/^[1-9]\d{0,9}$/.test(text)) return Number(text);
  throw new AcpError('validation-failed', `${name} is the number of a version, from 1, not "${text}".`);
};

const get = async ({ terminal, print, connected }: Session, { args, options }: Invocation): Promise<void> => {
  const [name] = args as [string];
  const { body } = await connected(({ client }) => client.agents.get({ params: { name } }));
  if (options['yaml'] !== true) return print(body);
  if (body.definition === null)
    throw new AcpError('agent-code-defined', `${name} is defined in code; its definition is in the file of the host.`);
  const { definitionYaml } = await import('../output/definition-yaml.ts');
  await terminal.write(definitionYaml(body.definition, terminal.interactive));
};

const diff = async ({ terminal, globals, print, connected }: Session, { args }: Invocation): Promise<void> => {
  const [name, left, right] = args as [string, string, string];
  const params = { name, a: version(left, 'The first argument'), b: version(right, 'The second argument') };
  const { body } = await connected(({ client }) => client.agents.diff({ params }));
  if (globals.json) return print(body);
  const { definitionYaml } = await import('../output/definition-yaml.ts');
  const before = definitionYaml(body.left, terminal.interactive);
  const after = definitionYaml(body.right, terminal.interactive);
  const lines = unifiedDiff(before, after, `${name} version ${params.a}`, `${name} version ${params.b}`);
  const { bold, cyan, green, red } = terminal.style;
  const styled = (line: string): string => {
    if (line.startsWith('---') || line.startsWith('+++')) return bold(line);
    if (line.startsWith('@@')) return cyan(line);
    return line.startsWith('+') ? green(line) : line.startsWith('-') ? red(line) : line;
  };
  for (const line of lines) await terminal.write(`${styled(line)}\n`);
  if (lines.length === 0) terminal.note('Both versions say the same.');
};

const rollback = async ({ print, connected }: Session, { args, options }: Invocation): Promise<void> => {
  const [name, target] = args as [string, string];
  const expected = options['expectedVersion'] as string | undefined;
  const body = {
    version: version(target, 'The second argument'),
    ...(expected === undefined ? {} : { expectedVersion: version(expected, '--expected-version') }),
  };
  const { body: restored } = await connected(({ client }) => client.agents.rollback({ params: { name }, body }));
  await print(
    restored,
    () => `${safeLine(name)} is now version ${restored.version}, with the content of version ${body.version}.\n`,
  );
};

/** A definition as the service reports on it, with the place of everything in the file. */
const reportOf = ({ name, file, line, inconclusive, findings, exitCode }: CheckedDefinition) => ({
  file,
  line,
  name,
  valid: exitCode === 0,
  inconclusive,
  messages: findings,
});

/** Prints what the service finds in definitions, with file and line; nothing is saved. */
const validate = async (session: Session, { options }: Invocation): Promise<number> => {
  const { terminal, globals } = session;
  const sources = await agentDocuments(
    await readDefinitions((options['file'] as string[] | undefined) ?? [], terminal),
  );
  const names = sources.documents.map(({ value }) => safeLine(String(value['name'] ?? '-')));
  const width = Math.max(1, ...names.map(textWidth));
  const all: CheckedDefinition[] = [];
  await session.connected(async ({ client }) => {
    for await (const checked of checkDefinitions(client, sources)) {
      all.push(checked);
      if (globals.json) continue;
      const { file, line, name, findings, exitCode } = checked;
      for (const finding of findings) terminal.note(findingLine(terminal.noteStyle, { file, ...finding }));
      const result = exitCode === 0 ? terminal.style.green('valid  ') : terminal.style.red('invalid');
      await terminal.write(`${result}  ${padText(safeLine(name ?? '-'), width)}  ${placeOf(file, line)}\n`);
    }
  }, 'check');
  const reports = all.map(reportOf);
  // One definition gives one report, several give a list of them.
  if (globals.json) await session.print(reports.length === 1 ? reports[0] : reports);
  return all.find(({ exitCode }) => exitCode !== 0)?.exitCode ?? 0;
};

/** The commands of `acp agents` that are more than one call. */
export const registerAgents = (host: CommandHost): void => {
  const agents = commandGroup(host.program, 'agents');
  registerAgentsApply(agents, host);
  const show = agents
    .command('get')
    .description('show one agent')
    .argument('<name>')
    .option('--yaml', 'print the definition as YAML that `apply` accepts');
  covers(show, 'agents.get').action(host.act(get));
  const check = agents
    .command('validate')
    .description('compile definitions without saving them and report every finding')
    .option('-f, --file <path>', 'file, folder, or - for the standard input (repeatable)', collect);
  covers(check, 'agents.validate').action(host.act(validate));
  const back = agents
    .command('rollback')
    .description('append the content of an earlier version as a new one')
    .argument('<name>')
    .argument('<version>')
    .option('--expected-version <n>', 'fail if another version is current');
  covers(back, 'agents.rollback').action(host.act(rollback));
  const compare = agents
    .command('diff')
    .description('show what changed between two versions, as a unified diff of their YAML')
    .argument('<name>')
    .argument('<a>', 'a version')
    .argument('<b>', 'another version');
  covers(compare, 'agents.diff').action(host.act(diff));
};
