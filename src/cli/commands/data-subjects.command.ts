import type { Command } from 'commander';
import { AcpError } from '../../contract/errors.ts';
import { type CommandHost, covers } from '../command-host.ts';
import { writeWhole } from '../files/write-whole.ts';

/** `acp data-subjects export|erase`: what is stored of one person. */
export const registerDataSubjects = (group: Command, host: CommandHost): void => {
  const exporting = group
    .command('export')
    .description('write all stored data of one person to a file')
    .argument('<id>', 'name or id by which the host knows the person')
    .requiredOption('-o, --output <file>', 'file to write, such as person.json');
  covers(exporting, 'dataSubjects.export').action(
    host.act(async ({ terminal, cwd, connected }, { args, options }) => {
      const [id] = args as [string];
      await connected(async ({ client }) => {
        const reply = await client.dataSubjects.export({ params: { id }, signal: terminal.closed });
        if (reply.bytes === undefined) throw new AcpError('cannot-connect', 'The service did not answer with a file.');
        terminal.note(`Wrote ${await writeWhole(String(options['output']), cwd, reply.bytes)}.`);
      });
    }),
  );
  const erasing = group
    .command('erase')
    .description('count the stored data of one person; with --yes delete it')
    .argument('<id>', 'name or id by which the host knows the person')
    .option('--yes', 'delete it permanently');
  covers(erasing, 'dataSubjects.erase').action(
    host.act(async ({ terminal, globals, print, connected }, { args, options }) => {
      const [id] = args as [string];
      await connected(async ({ client }) => {
        const query = { dryRun: options['yes'] !== true };
        const { body } = await client.dataSubjects.erase({ params: { id }, query, signal: terminal.closed });
        await print(body);
        if (body.dryRun && !globals.json) terminal.note('Nothing was deleted; --yes deletes it.');
      });
    }),
  );
};
