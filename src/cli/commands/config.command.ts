import type { CommandHost } from '../command-host.ts';
import { readConfig } from '../read-config.ts';

/** `acp config`: the effective settings with their sources. */
export const registerConfig = (host: CommandHost): void => {
  host.program
    .command('config')
    .description('show every setting with its value and source; secrets as ***')
    .option('--example', 'print a commented service.yaml with every setting at its default instead')
    .action(
      host.act(async (session, { options }) => {
        const { terminal, globals } = session;
        const config = await import('../../core/config/index.ts');
        if (options['example'] === true) return terminal.write(config.renderExampleYaml());
        const loaded = await readConfig(session);
        await terminal.writeJson(config.renderEffective(loaded, { json: globals.json }));
        if (loaded.warnings.length > 0 && !globals.json)
          terminal.note(`${terminal.noteStyle.yellow('Warnings:')}\n${config.describeProblems(loaded.warnings)}`);
      }),
    );
};
