import type { Command } from 'commander';
import { type CommandHost, covers } from '../command-host.ts';
import { expiryTime } from './keys-create.command.ts';

interface GrantOptions {
  readonly script?: string;
  readonly expires?: string;
}

/** `acp grants add`: lets the scripts of a skill run, or one of them. */
export const registerGrantsAdd = (grants: Command, host: CommandHost): void => {
  const command = grants
    .command('add')
    .description('allow the scripts of a skill, or one of them, to run')
    .argument('<skill>')
    .option('--script <name>', 'only this script; default: every script, including those added later')
    .option('--expires <when>', '30d, 12h, 8w or a date; default: never');
  covers(command, 'grants.create').action(
    host.act(async ({ print, connected }, { args, options }) => {
      const [skillName] = args as [string];
      const { script, expires } = options as GrantOptions;
      const body = {
        skillName,
        ...(script === undefined ? {} : { scriptName: script }),
        ...(expires === undefined ? {} : { expiresAt: expiryTime(expires, Date.now()) }),
      };
      const { body: grant } = await connected(({ client }) => client.grants.create({ body }));
      await print(grant);
    }),
  );
};
