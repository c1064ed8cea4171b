import process from 'node:process';
import { version } from '../../core/version.ts';
import type { CommandHost } from '../command-host.ts';
import { printReply } from '../output/print-reply.ts';

/** `acp version`: what a report of a problem should name. */
export const registerVersion = (host: CommandHost): void => {
  host.program
    .command('version')
    .description('print the versions of acp and of its runtime')
    .action(
      host.act(({ terminal, globals }) => {
        const facts = { acp: version, node: process.versions.node, platform: `${process.platform}-${process.arch}` };
        return printReply(terminal, facts, { json: globals.json });
      }),
    );
};
