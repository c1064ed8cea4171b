import process from 'node:process';
import { version } from '../../core/version.ts';
import type { CommandHost } from '../command-host.ts';

/** `acp version`: what a report of a problem should name. */
export const registerVersion = (host: CommandHost): void => {
  host.program
    .command('version')
    .description('print the versions of acp and of its runtime')
    .action(
      host.act(({ print }) =>
        print({ acp: version, node: process.versions.node, platform: `${process.platform}-${process.arch}` }),
      ),
    );
};
