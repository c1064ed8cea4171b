import type { Command } from 'commander';
import { type ApiKeyScope, apiKeyScopes, type Role, roles } from '../../contract/authority.ts';
import { AcpError } from '../../contract/errors.ts';
import { formatTime } from '../../text/format.ts';
import { type CommandHost, collect, covers } from '../command-host.ts';

interface KeyOptions {
  readonly scope?: readonly string[];
  readonly role?: string;
  readonly expires?: string;
}

const unitMs: Readonly<Record<string, number>> = { h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** `30d`, `12h`, `8w` from now, or a date or time as it is. */
export const expiryTime = (text: string, now: number): string => {
  const [, amount, unit] = /^(\d{1,5})([hdw])$/.exec(text) ?? [];
  // `Date.parse` also takes a bare number, and reads it as a year.
  const date = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN;
  const time = amount === undefined || unit === undefined ? date : now + Number(amount) * (unitMs[unit] ?? 0);
  if (Number.isNaN(time))
    throw new AcpError('validation-failed', `--expires takes 30d, 12h, 8w or a date, not "${text}".`);
  return new Date(time).toISOString();
};

const wordOf = <W extends string>(words: readonly W[], text: string, option: string): W => {
  const word = words.find((candidate) => candidate.toLowerCase() === text.toLowerCase());
  if (word === undefined)
    throw new AcpError('validation-failed', `${option} takes one of ${words.join(', ')}, not "${text}".`);
  return word;
};

/** `acp keys create`: the key goes to stdout, everything about it to stderr. */
export const registerKeysCreate = (keys: Command, host: CommandHost): void => {
  const command = keys
    .command('create')
    .description('create an API key and print it once')
    .argument('<name>')
    .option('--scope <scope>', `permitted use (repeatable): ${apiKeyScopes.join(', ')}`, collect)
    .option('--role <role>', `${roles.join(', ')}; default: the lowest that the scopes can use`)
    .option('--expires <when>', '30d, 12h, 8w or a date; default: never');
  covers(command, 'keys.create').action(
    host.act(async ({ terminal, globals, print, connected }, { args, options }) => {
      const [name] = args as [string];
      const { scope = [], role, expires } = options as KeyOptions;
      const scopes: ApiKeyScope[] = scope.map((text) => wordOf(apiKeyScopes, text, '--scope'));
      const body = {
        name,
        scopes,
        ...(role === undefined ? {} : { role: wordOf<Role>(roles, role, '--role') }),
        ...(expires === undefined ? {} : { expiresAt: expiryTime(expires, Date.now()) }),
      };
      const { body: created } = await connected(({ client }) => client.keys.create({ body }));
      if (globals.json) return print(created);
      const { record, plaintextKey } = created;
      const until = record.expiresAt === null ? 'without an end' : `until ${formatTime(record.expiresAt)}`;
      terminal.note(`Key ${record.id} (${record.role}; ${record.scopes.join(', ')}; ${until}). It is not shown again:`);
      await terminal.write(`${plaintextKey}\n`);
    }),
  );
};
