import type { Command } from 'commander';
import { commandEntries } from '../../src/cli/command-host.ts';
import { errorTable } from '../../src/contract/errors.ts';

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');

const argumentText = (command: Command): string =>
  command.registeredArguments
    .map((argument) => {
      const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
      return argument.required ? ` <${name}>` : ` [${name}]`;
    })
    .join('');

const optionRows = (command: Command): string[] =>
  command.options.map(({ flags, description }) => `| \`${cell(flags)}\` | ${cell(description)} |`);

const section = (name: string, command: Command): string[] => {
  const options = optionRows(command);
  const described = command.registeredArguments.filter(({ description }) => description !== '');
  return [
    `### acp ${name}`,
    '',
    `\`acp ${name}${argumentText(command)}${options.length === 0 ? '' : ' [options]'}\` – ${command.description()}`,
    '',
    ...described.map((argument) => `- \`${argument.name()}\`: ${argument.description}`),
    ...(described.length === 0 ? [] : ['']),
    ...(options.length === 0 ? [] : ['| Option | Meaning |', '|---|---|', ...options, '']),
  ];
};

const exitRows = (): string[] => {
  const meanings: Readonly<Record<number, string>> = {
    1: 'a bug, a failed check of `doctor` and `db check`, or rows that `db reencrypt` left',
    2: 'the command line, a file or the request is not valid',
    3: 'credential or authority',
    4: 'not found',
    5: 'conflict with the state of something',
    6: 'a limit',
    7: 'a model provider, a tool or a judge failed',
    8: 'the service or its store is not available',
    9: 'not in this build, or switched off',
    10: 'the run waits for approvals or for results of client-side tools; stderr has the commands that continue it; a replay drifted; a dry run of `apply` would change something (`--exit-code`); a policy test found something (`--fail-on-match`)',
    11: 'a replay lacks something; a policy test could not evaluate everything (`--fail-on-gap`)',
    12: 'no service was named or found, and there is no store',
  };
  const codes = Object.entries(errorTable).map(([code, { exit }]) => ({ code, exit }));
  return Object.entries(meanings).map(([exit, meaning]) => {
    const names = codes.filter((entry) => entry.exit === Number(exit)).map(({ code }) => `\`${code}\``);
    return `| ${exit} | ${meaning} | ${names.join(', ')} |`;
  });
};

/** The reference of the command line, made from the program itself. */
export const renderReference = (program: Command): string => {
  const lines = [
    '# Command line reference',
    '',
    '<!-- Made from the program by `ACP_UPDATE_GOLDEN=1 npm test -- test/cli/reference.test.ts`; a test keeps it true. -->',
    '',
    'Commands use a running service (`--url`, or the owner of the configured store) or, without one, the store itself in',
    'the same process: same commands, same output, same errors. Results go to stdout, everything about them to',
    'stderr. `acp <command> --help` shows the same as this page.',
    '',
    '## Options of every command',
    '',
    '| Option | Meaning |',
    '|---|---|',
    ...optionRows(program),
    '',
    'Variables: `ACP_URL`, `ACP_TOKEN` (a token or an API key), `ACP_CONFIG`, `NO_COLOR`, and `ACP_DEBUG=1`, which prints the',
    'stack of an unexpected error. Credentials cannot be passed on the command line, which other users of the machine can see.',
    '',
    '## Commands',
    '',
    ...commandEntries(program).flatMap(({ name, command }) => section(name, command)),
    '## Exit codes',
    '',
    'A failed run ends `acp run` with the code of its error. 130 and 143 mean an interrupt (Ctrl-C, SIGTERM).',
    '',
    '| Code | Meaning | Error codes |',
    '|---|---|---|',
    '| 0 | done |  |',
    ...exitRows(),
    '',
  ];
  return lines.join('\n');
};
